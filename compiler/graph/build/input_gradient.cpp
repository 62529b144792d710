// A transposed convolution reads its weights in an order in which neighbours lie apart, so it
// copies them, and weights of training change with each step. Here the sum over out channels comes
// first: [places, out channels] by [out channels, channels * taps]. With strides no product is of
// zeros between the gradient's places.
#include "compiler/graph/build/input_gradient.h"

#include <algorithm>
#include <vector>

#include "compiler/graph/build/weight_gradient.h"

namespace fornax::graph {
namespace {

// With less to multiply, or fewer columns, another kernel is not worth it.
constexpr double kLeastOperations = 16e6;
constexpr int64_t kLeastColumns = 64;
// With stride 1 the sums of windows take about as long an element as the copies of weights.
constexpr int64_t kLeastWeightsPerSum = 2;

struct Sizes {
    std::vector<int64_t> gradient, w;
    std::vector<int64_t> low, taps;

    int64_t places() const { return gradient[0] * gradient[2] * gradient[3]; }
    int64_t columns() const { return w[1] * w[2] * w[3]; }
};

std::optional<Sizes> SizesOf(Val gradient, Val w, const SpatialWindow& window) {
    if (gradient.rank() != 4 || w.rank() != 4 || window.rank() != 2) {
        return std::nullopt;
    }
    const auto of_gradient = gradient.shape().Constants(), of_w = w.shape().Constants();
    if (!of_gradient || !of_w || (*of_gradient)[1] != (*of_w)[0]) {
        return std::nullopt;
    }
    Sizes sizes{*of_gradient, *of_w, {}, {}};
    for (size_t i = 0; i < window.rank(); ++i) {
        const std::optional<int64_t> low = window.low[i].constant();
        if (!low || window.size[i].constant() != sizes.w[i + 2]) {
            return std::nullopt;
        }
        sizes.low.push_back(*low);
        sizes.taps.push_back(sizes.w[i + 2]);
    }
    return sizes;
}

}  // namespace

bool IsWindowSumFaster(Val gradient, Val w, const SpatialWindow& window) {
    const std::optional<Sizes> sizes = SizesOf(gradient, w, window);
    if (!sizes || sizes->taps[0] * sizes->taps[1] == 1) {
        return false;
    }
    const bool has_strides = window.strides[0] != 1 || window.strides[1] != 1;
    const double operations = 2 * static_cast<double>(sizes->places() * sizes->columns()) *
                              static_cast<double>(sizes->w[0]);
    return sizes->columns() >= kLeastColumns && operations >= kLeastOperations &&
           (has_strides || sizes->w[0] >= kLeastWeightsPerSum * sizes->places());
}

std::optional<Val> WindowSumInputGradient(Val gradient,
                                          Val w,
                                          const SpatialWindow& window,
                                          const Shape& image) {
    const std::optional<Sizes> sizes = SizesOf(gradient, w, window);
    const auto of_image = image.Constants();
    if (!sizes || !of_image || image.rank() != 4 || gradient.element() != ElementType::kF32 ||
        w.element() != ElementType::kF32) {
        return std::nullopt;
    }
    const Val matrix =
        MatrixInMemory(Flatten(Permute(gradient, {0, 2, 3, 1}), 0, 3), sizes->places());
    const Val product = Contract(matrix, w, "po,ocyx->pcyx", ElementType::kF32);
    // [batch, channels, height, width, taps..., taps...]
    const Val windows =
        Permute(Reshape(product, Shape{sizes->gradient[0], sizes->gradient[2], sizes->gradient[3],
                                       sizes->w[1], sizes->taps[0], sizes->taps[1]}),
                {0, 3, 1, 2, 4, 5});
    Val sum;
    for (int64_t y = 0; y < sizes->taps[0]; ++y) {
        for (int64_t x = 0; x < sizes->taps[1]; ++x) {
            Val part = Select(Select(windows, 5, x), 4, y);
            std::vector<Expr> low = {0, 0}, high = {0, 0};
            std::vector<int64_t> between = {0, 0};
            const int64_t taps[] = {y, x};
            for (size_t i = 0; i < 2; ++i) {
                // The padded image: the gradient's places meet this tap a stride apart.
                const int64_t first = taps[i] * window.dilations[i];
                const int64_t places = (sizes->gradient[i + 2] - 1) * window.strides[i] + 1;
                low.emplace_back(first);
                high.emplace_back(
                    std::max<int64_t>(0, sizes->low[i] + (*of_image)[i + 2] - first - places));
                between.push_back(window.strides[i] - 1);
            }
            part = Pad(part, Like(part, 0), std::move(low), std::move(high), std::move(between));
            for (const size_t i : {0, 1}) {
                part =
                    SliceAxis(part, static_cast<int64_t>(i) + 2, sizes->low[i], (*of_image)[i + 2]);
            }
            sum = sum ? sum + part : part;
        }
    }
    return sum;
}

}  // namespace fornax::graph
