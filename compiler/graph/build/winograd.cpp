// The transforms are written such that each is one expression of the position: of the four
// positions along an axis the first two, v1 and v2, are d2 + s * d1 with s = 1 and -1, the last two
// are d2 - d0 and d3 - d1, and the results are m1 + s * m2 + m0 and m1 + s * m2 - m3. Signs are in
// the weights (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, section 4.1).
#include "compiler/graph/build/winograd.h"

#include <array>
#include <cstring>

namespace fornax::graph {
namespace {

constexpr int64_t kWindow = 3;
// Results of a tile along an axis, and positions: two halves of two.
constexpr int64_t kTile = 2;
constexpr int64_t kPositions = 4;
constexpr double kOfWeights[kPositions][kWindow] = {{0.5, 0.5, 0.5},
                                                    {0.5, -0.5, 0.5},
                                                    {-1, 0, 0},
                                                    {0, 0, 1}};
// By position over both axes: the halves, then the places in them.
constexpr int64_t kPairs = kPositions * kPositions;

std::vector<Expr> DimsOf(Val value) {
    const Shape shape = value.shape();
    return {shape.dims().begin(), shape.dims().end()};
}

// 1 and -1 along an axis of two, for values of this rank.
Val Signs(Builder& b, int64_t rank, int64_t axis) {
    std::vector<Expr> dims(static_cast<size_t>(rank), Expr(1));
    dims[static_cast<size_t>(axis)] = kTile;
    return 1.0 - 2.0 * b.Iota(ElementType::kF32, Shape(dims), axis);
}

// The elements from `start` on along an axis, as tiles and the places in them.
Val Tiles(Val value, int64_t axis, int64_t start, const Expr& tiles) {
    const Val part = SliceAxis(value, axis, start, tiles * kTile);
    std::vector<Expr> dims = DimsOf(part);
    dims[static_cast<size_t>(axis)] = kTile;
    dims.insert(dims.begin() + axis, tiles);
    return Reshape(part, Shape(std::move(dims)));
}

// Two of the positions along an axis of 2 * tiles + 2 elements, which becomes two axes: tiles and
// positions.
Val Transform(Val image, int64_t axis, bool second_half, const Expr& tiles) {
    const Val end = Tiles(image, axis, 2, tiles);
    if (second_half) {
        return end - Tiles(image, axis, 0, tiles);
    }
    const Val two = Unsqueeze(SliceAxis(image, axis, 2, tiles, kTile), axis + 1);
    const Val one = Unsqueeze(SliceAxis(image, axis, 1, tiles, kTile), axis + 1);
    return two + Signs(image.builder(), two.rank(), axis + 1) * one;
}

// The results along an axis from sums [halves, ..., positions, ...].
Val Restore(Val sums, int64_t positions) {
    const Val first = Select(sums, 0, 0), second = Select(sums, 0, 1);
    const int64_t axis = positions - 1;
    const Val even = SliceAxis(first, axis, 0, 1), odd = SliceAxis(first, axis, 1, 1);
    return even + Signs(sums.builder(), first.rank(), axis) * odd + second;
}

// What an element of a window adds to a position. Positions are numbered by halves of rows and of
// columns, then by places of rows and of columns.
double OfWeights(int64_t pair, size_t place) {
    const double* rows = kOfWeights[pair / 8 * 2 + pair / 2 % 2];
    const double* columns = kOfWeights[pair / 4 % 2 * 2 + pair % 2];
    return rows[place / kWindow] * columns[place % kWindow];
}

// [positions, out channels, channels].
Tensor TransformWeights(const Tensor& weights) {
    const int64_t outputs = weights.dims[0], channels = weights.dims[1];
    uint8_t* data = nullptr;
    Tensor result = Tensor::Zeros(ElementType::kF32, {kPairs, outputs, channels}, &data);
    for (int64_t i = 0; i < outputs * channels; ++i) {
        std::array<float, kWindow * kWindow> window;
        std::memcpy(window.data(), weights.data->data() + i * int64_t{sizeof(window)},
                    sizeof(window));
        for (int64_t pair = 0; pair < kPairs; ++pair) {
            double sum = 0;
            for (size_t place = 0; place < window.size(); ++place) {
                sum += OfWeights(pair, place) * window[place];
            }
            const auto rounded = static_cast<float>(sum);
            std::memcpy(data + (pair * outputs * channels + i) * int64_t{sizeof(float)}, &rounded,
                        sizeof(float));
        }
    }
    return result;
}

// The same of weights that are not constant, as [positions, channels, out channels].
Val TransformWeights(Val weights, WeightOrder order) {
    constexpr size_t kPlaces = kWindow * kWindow;
    std::vector<float> factors;
    for (int64_t pair = 0; pair < kPairs; ++pair) {
        for (size_t place = 0; place < kPlaces; ++place) {
            const bool is_mirrored = order == WeightOrder::kTransposed;
            factors.push_back(
                static_cast<float>(OfWeights(pair, is_mirrored ? kPlaces - 1 - place : place)));
        }
    }
    const Val matrix = weights.builder().Constant(
        Tensor::FromFloats({kPairs, static_cast<int64_t>(kPlaces)}, factors));
    const Val places = Flatten(weights, 2, 4);
    return Contract(places, matrix,
                    order == WeightOrder::kConvolution ? "odk,pk->pdo" : "dok,pk->pdo",
                    ElementType::kF32);
}

// `weights` are transformed, and labels are those of the products.
Val ConvolveTransformed(Val x,
                        Val weights,
                        const Expr& outputs,
                        std::string_view labels,
                        const SpatialWindow& window) {
    const Expr batch = x.dim(0), channels = x.dim(1);
    std::array<Expr, 2> size, tiles;  // of the result
    std::vector<Expr> low = {0, 0}, high = {0, 0};
    for (size_t i = 0; i < 2; ++i) {
        size[i] =
            x.dim(static_cast<int64_t>(i) + 2) + window.low[i] + window.high[i] - (kWindow - 1);
        tiles[i] = CeilDiv(size[i], kTile);
        low.push_back(window.low[i]);
        high.push_back(window.high[i] + tiles[i] * kTile - size[i]);
    }
    const Val image = Permute(Pad(x, 0, low, high), {0, 2, 3, 1});
    Vals halves;
    for (const bool second_row : {false, true}) {
        const Val rows = Transform(image, 1, second_row, tiles[0]);
        for (const bool second_column : {false, true}) {
            // [batch, row, place in it, column, place in it, channels]
            const Val places = Transform(rows, 3, second_column, tiles[1]);
            halves.push_back(Reshape(Permute(places, {2, 4, 0, 1, 3, 5}),
                                     Shape{kPositions, batch, tiles[0], tiles[1], channels}));
        }
    }
    const Val sums = Contract(Concat(halves, 0), weights, labels);
    const Val parted =
        Reshape(sums, Shape{kTile, kTile, kTile, kTile, batch, tiles[0], tiles[1], outputs});
    const Val results = Restore(Restore(parted, 2), 2);  // [row, column, batch, rows, columns, out]
    const Val all = Reshape(Permute(results, {2, 3, 0, 4, 1, 5}),
                            Shape{batch, tiles[0] * kTile, tiles[1] * kTile, outputs});
    return Permute(Slice(all, {0, 0, 0, 0}, {1, 1, 1, 1}, Shape{batch, size[0], size[1], outputs}),
                   {0, 3, 1, 2});
}

}  // namespace

Val ConvolveWinograd(Val x, const Tensor& weights, const SpatialWindow& window) {
    Builder& b = x.builder();
    return ConvolveTransformed(x, b.Constant(TransformWeights(weights), b.name()), weights.dims[0],
                               "pnrcd,pod->pnrco", window);
}

Val ConvolveWinograd(Val x, Val weights, WeightOrder order, const SpatialWindow& window) {
    const Expr outputs = weights.dim(order == WeightOrder::kConvolution ? 0 : 1);
    return ConvolveTransformed(x, TransformWeights(weights, order), outputs, "pnrcd,pdo->pnrco",
                               window);
}

}  // namespace fornax::graph
