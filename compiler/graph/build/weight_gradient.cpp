// Planes: the sum over places of a gradient and of the image moved by a tap of the window is one
// long sum: image and gradient get rows of one pitch, with zeros between rows and behind images, so
// that moving by a tap adds a number to the index. With channels last both are matrices, and the
// taps along a row are columns of them that overlap in memory. With strides, each row of the image
// that a tap may meet is in the array of its remainder by the stride.
#include "compiler/graph/build/weight_gradient.h"

#include <algorithm>
#include <vector>

#include "compiler/graph/build/winograd.h"

namespace fornax::graph {
namespace {

// Sums are as long as whole matrices of 16.
constexpr int64_t kSide = 16;
// With fewer columns, or less to multiply, the copies are not worth it.
constexpr int64_t kLeastColumns = 16;
constexpr double kLeastOperations = 16e6;
// How much longer zeros may make the sums. With strides the other form is so slow that it may be
// any number.
constexpr double kMostLonger = 1.5;
// A copy of each window pays for itself if it is multiplied this often, and stays in the caches.
constexpr int64_t kLeastOutputs = 64;
constexpr int64_t kMostWindowBytes = int64_t{8} << 20;

// Along one axis.
struct Axis {
    int64_t image = 0, result = 0, taps = 0, low = 0, stride = 1, dilation = 1;

    // The last tap's distance from the first.
    int64_t reach() const { return (taps - 1) * dilation; }
};

struct Planes {
    int64_t batch = 0;
    Axis y, x;
    int64_t rows = 0, pitch = 0;   // of an image's plane; the image's rows are strides as long
    int64_t front = 0, depth = 0;  // zeros before the gradient; the sum's length

    int64_t places() const { return batch * rows * pitch; }
};

std::optional<Axis> AxisOf(Val gradient, Val x, const SpatialWindow& window, size_t i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const std::optional<int64_t> taps = window.size[i].constant(), low = window.low[i].constant();
    const std::optional<int64_t> high = window.high[i].constant();
    if (!taps || !low || !high) {
        return std::nullopt;
    }
    const Axis made = {
        *x.dim(axis).constant(), *gradient.dim(axis).constant(), *taps, *low, window.strides[i],
        window.dilations[i]};
    // No window lies in the padding alone.
    if (*low < 0 || *high < 0 || *low > made.reach() || *high > made.reach() || made.result < 1 ||
        (made.image + *low + *high - made.reach() - 1) / made.stride + 1 != made.result) {
        return std::nullopt;
    }
    return made;
}

// How many strides a row takes with the zeros that it shares.
int64_t SharedLength(const Axis& axis) {
    const int64_t last = (axis.result - 1) * axis.stride + axis.reach() - axis.low;
    const int64_t needed = std::max(axis.image + axis.low, last + 1);
    return std::max(axis.result, (needed + axis.stride - 1) / axis.stride);
}

std::optional<Planes> PlanesOf(Val gradient, Val x, const SpatialWindow& window) {
    if (x.element() != ElementType::kF32 || gradient.element() != ElementType::kF32 ||
        x.rank() != 4 || gradient.rank() != 4 || !x.shape().Constants() ||
        !gradient.shape().Constants()) {
        return std::nullopt;
    }
    const std::optional<Axis> rows = AxisOf(gradient, x, window, 0);
    const std::optional<Axis> columns = AxisOf(gradient, x, window, 1);
    if (!rows || !columns) {
        return std::nullopt;
    }
    Planes planes;
    planes.batch = *x.dim(0).constant();
    planes.y = *rows;
    planes.x = *columns;
    // The zeros behind a row, or an image, are those before the next one; but images whose rows lie
    // in several arrays have zeros of their own.
    planes.rows =
        rows->stride == 1 ? SharedLength(*rows) : rows->result + rows->reach() / rows->stride;
    planes.pitch = SharedLength(*columns);
    // Zeros before and behind the gradient make the length a multiple of a matrix.
    planes.front = 1;
    planes.depth = (planes.front + planes.places() + 1 + kSide - 1) / kSide * kSide;
    return planes;
}

// [batch, rows, columns, channels] as [places, channels], with zeros before, and behind up to
// `total` rows. Three parts, so that it lies in memory.
Val Flat(Val value, int64_t before, int64_t total) {
    Builder& b = value.builder();
    const Val flat = Flatten(value, 0, 3);
    const Expr channels = flat.dim(1);
    const auto zeros = [&](const Expr& rows) {
        return b.Full(ElementType::kF32, Shape{rows, channels}, 0);
    };
    return Concat({zeros(before), flat, zeros(total - before - flat.dim(0))}, 0);
}

double OperationsOf(Val gradient, Val x, const SpatialWindow& window) {
    const SizeFacts& sizes = x.builder().sizes();
    double operations = 2 * static_cast<double>(sizes.Hint(gradient.shape().Volume())) *
                        static_cast<double>(sizes.Hint(x.dim(1)));
    for (const Expr& taps : window.size) {
        operations *= static_cast<double>(sizes.Hint(taps));
    }
    return operations;
}

// Whether sums of planes are not much longer than those of the convolution.
bool IsPlanarFaster(const Planes& planes, double channels, double outputs) {
    const int64_t places = planes.batch * planes.y.result * planes.x.result;
    const bool has_strides = planes.y.stride != 1 || planes.x.stride != 1;
    const double columns = channels * static_cast<double>(planes.x.taps);
    return std::min(columns, outputs) >= kLeastColumns &&
           (has_strides ||
            static_cast<double>(planes.depth) <= kMostLonger * static_cast<double>(places));
}

// Whether copies of all windows stay in the caches.
bool IsWindowCopyFaster(const Planes& planes, int64_t channels, int64_t outputs) {
    const int64_t places = planes.batch * planes.y.result * planes.x.result;
    const int64_t columns = channels * planes.y.taps * planes.x.taps;
    return places % kSide == 0 && outputs >= kLeastOutputs && columns >= kLeastColumns &&
           places <= kMostWindowBytes / 4 / columns;
}

bool IsOfWinograd(const Planes& planes, double channels, double outputs) {
    for (const Axis& axis : {planes.y, planes.x}) {
        if (axis.taps != 3 || axis.stride != 1 || axis.dilation != 1) {
            return false;
        }
    }
    const int64_t tiles = planes.batch * ((planes.y.result + 1) / 2) * ((planes.x.result + 1) / 2);
    return IsWinogradFaster(static_cast<double>(tiles), channels, outputs, WeightSource::kRun);
}

}  // namespace

WeightGradientForm FastestWeightGradient(Val gradient, Val x, const SpatialWindow& window) {
    const std::optional<Planes> planes = PlanesOf(gradient, x, window);
    if (!planes || OperationsOf(gradient, x, window) < kLeastOperations) {
        return WeightGradientForm::kConvolution;
    }
    const int64_t channels = *x.dim(1).constant(), outputs = *gradient.dim(1).constant();
    const auto of_channels = static_cast<double>(channels);
    const auto of_outputs = static_cast<double>(outputs);
    if (IsOfWinograd(*planes, of_channels, of_outputs)) {
        return WeightGradientForm::kWinograd;
    }
    if (IsPlanarFaster(*planes, of_channels, of_outputs)) {
        return WeightGradientForm::kPlanes;
    }
    return IsWindowCopyFaster(*planes, channels, outputs) ? WeightGradientForm::kWindowCopies
                                                          : WeightGradientForm::kConvolution;
}

std::optional<Val> WeightGradientOf(WeightGradientForm form,
                                    Val gradient,
                                    Val x,
                                    const SpatialWindow& window) {
    switch (form) {
        case WeightGradientForm::kConvolution:
            return std::nullopt;
        case WeightGradientForm::kPlanes:
            return PlanarWeightGradient(gradient, x, window);
        case WeightGradientForm::kWindowCopies:
            return WindowCopyWeightGradient(gradient, x, window);
        case WeightGradientForm::kWinograd:
            return WinogradWeightGradient(gradient, x, window);
    }
    return std::nullopt;
}

// In three parts.
Val MatrixInMemory(Val matrix, int64_t rows) {
    const int64_t third = rows / 3;
    return Concat({SliceAxis(matrix, 0, 0, third), SliceAxis(matrix, 0, third, third),
                   SliceAxis(matrix, 0, 2 * third, rows - 2 * third)},
                  0);
}

std::optional<Val> PlanarWeightGradient(Val gradient, Val x, const SpatialWindow& window) {
    const std::optional<Planes> found = PlanesOf(gradient, x, window);
    if (!found) {
        return std::nullopt;
    }
    const Planes& planes = *found;
    const Axis &rows = planes.y, &columns = planes.x;
    const Expr channels = x.dim(1);
    const auto channels_last = [](Val value) { return Permute(value, {0, 2, 3, 1}); };
    const Val g = Flat(Pad(channels_last(gradient), 0, {0, 0, 0, 0},
                           {0, planes.rows - rows.result, planes.pitch - columns.result, 0}),
                       planes.front, planes.depth);
    const int64_t row = columns.stride * planes.pitch;
    const int64_t own = rows.stride == 1 ? 0 : rows.low;  // zeros above each image
    const int64_t before = planes.front * columns.stride + columns.low + (rows.low - own) * row;
    const Val padded =
        Pad(channels_last(x), 0, {0, own, 0, 0},
            {0, planes.rows * rows.stride - own - rows.image, row - columns.image, 0});
    const Val apart = Reshape(padded, Shape{planes.batch, planes.rows, rows.stride, row, channels});
    // Index s * q of this meets place q of the gradient for the first tap.
    const int64_t used = (planes.depth - 1) * columns.stride + 1;
    std::vector<Val> images(static_cast<size_t>(rows.stride));
    Vals results;
    for (int64_t tap = 0; tap < rows.taps; ++tap) {
        const int64_t remainder = tap * rows.dilation % rows.stride;
        Val& image = images[static_cast<size_t>(remainder)];
        if (!image) {
            image = Flat(Select(apart, 2, remainder), before,
                         used + columns.reach() + rows.reach() / rows.stride * row);
        }
        const Val from =
            SliceAxis(image, 0, tap * rows.dilation / rows.stride * row, used + columns.reach());
        const Val taps = Window(from, 0, columns.taps, columns.stride, columns.dilation);
        results.push_back(Contract(g, taps, "po,pct->otc", ElementType::kF32));
    }
    return Permute(Stack(results, 0), {1, 3, 0, 2});
}

std::optional<Val> WindowCopyWeightGradient(Val gradient, Val x, const SpatialWindow& window) {
    const std::optional<Planes> planes = PlanesOf(gradient, x, window);
    if (!planes) {
        return std::nullopt;
    }
    const Axis &rows = planes->y, &columns = planes->x;
    const auto behind = [](const Axis& axis) {
        const int64_t used = (axis.result - 1) * axis.stride + axis.reach() + 1;
        return std::max<int64_t>(0, used - axis.low - axis.image);
    };
    const Val padded =
        Pad(x, 0, {0, 0, rows.low, columns.low}, {0, 0, behind(rows), behind(columns)});
    Vals taps;
    for (int64_t y = 0; y < rows.taps; ++y) {
        for (int64_t column = 0; column < columns.taps; ++column) {
            const auto moved = [](Val value, int64_t axis, const Axis& along, int64_t tap) {
                return SliceAxis(value, axis, tap * along.dilation, along.result, along.stride);
            };
            const Val image = moved(moved(padded, 2, rows, y), 3, columns, column);
            taps.push_back(Flatten(Permute(image, {0, 2, 3, 1}), 0, 3));
        }
    }
    // [places, channels, taps]: what the product writes is the gradient as it is.
    const Val windows = Flatten(Stack(taps, 2), 1, 3);
    const Val g = MatrixInMemory(Flatten(Permute(gradient, {0, 2, 3, 1}), 0, 3),
                                 planes->batch * rows.result * columns.result);
    const Val product = Contract(g, windows, "po,pn->on", ElementType::kF32);
    return Reshape(product, Shape{gradient.dim(1), x.dim(1), rows.taps, columns.taps});
}

}  // namespace fornax::graph
