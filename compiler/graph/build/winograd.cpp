// The transforms are written such that each is one expression of the position: of the four
// positions along an axis the first two, v1 and v2, are d2 + s * d1 with s = 1 and -1, the last two
// are d2 - d0 and d3 - d1, and the results are m1 + s * m2 + m0 and m1 + s * m2 + m3. Signs are in
// the weights (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, section 4.1).
#include "compiler/graph/build/winograd.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace fornax::graph {
namespace {

// A tile has 2 x 2 results and 16 numbers a channel; 36 multiply-adds for each pair of channels
// become 16.
constexpr double kSavedOperations = 2 * (36 - 16);
constexpr double kBytesOfTile = 16 * sizeof(float);
// The weights of a pair of channels, or the gradient by them: 9 and 16 numbers are read or written
// and 16 are read again.
constexpr double kBytesOfTransformed = (9 + 16 + 16) * sizeof(float);
// Operations in the time that a byte takes to be written or read: measured on two cores of a Zen 4,
// where the form is faster from 16 channels on as long as all stays in the caches, and from 32 on
// otherwise.
constexpr double kOperationsPerCachedByte = 1.5;
constexpr double kOperationsPerByte = 4;
constexpr double kCacheBytes = 16 << 20;
// Larger arrays were not measured.
constexpr double kMostBytes = 256 << 20;
// Fewer tiles are a product of few rows, which takes as long as reading its weights.
constexpr double kLeastTiles = 16;
constexpr double kLeastChannels = 16;
// What a convolution must save to be worth more dispatches.
constexpr double kLeastSaved = 16e6;

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

// The positions of a channels-last image's tiles, [pairs, batch, rows, columns, channels], where
// transform(value, axis, second half) has two of the positions along an axis as two axes, tiles and
// positions.
template <typename T>
Val TransformedTiles(Val image, const Expr& rows, const Expr& columns, const T& transform) {
    const Shape shape{kPositions, image.dim(0), rows, columns, image.dim(3)};
    Vals halves;
    for (const bool second_row : {false, true}) {
        const Val half = transform(image, 1, second_row);
        for (const bool second_column : {false, true}) {
            // [batch, row, place in it, column, place in it, channels]
            const Val places = transform(half, 3, second_column);
            halves.push_back(Reshape(Permute(places, {2, 4, 0, 1, 3, 5}), shape));
        }
    }
    return Concat(halves, 0);
}

// The result's size along its axes, and how many tiles that is.
struct Tiling {
    std::array<Expr, 2> size, tiles;

    // The image with channels last, and as much padding as whole tiles read.
    Val Image(Val x, const SpatialWindow& window) const {
        std::vector<Expr> low = {0, 0}, high = {0, 0};
        for (size_t i = 0; i < 2; ++i) {
            low.push_back(window.low[i]);
            high.push_back(window.high[i] + tiles[i] * kTile - size[i]);
        }
        return Permute(Pad(x, 0, low, high), {0, 2, 3, 1});
    }
};

Tiling TilingOf(Val x, const SpatialWindow& window) {
    Tiling tiling;
    for (size_t i = 0; i < 2; ++i) {
        tiling.size[i] =
            x.dim(static_cast<int64_t>(i) + 2) + window.low[i] + window.high[i] - (kWindow - 1);
        tiling.tiles[i] = CeilDiv(tiling.size[i], kTile);
    }
    return tiling;
}

Val TransformedImage(Val x, const SpatialWindow& window, const Tiling& tiling) {
    return TransformedTiles(tiling.Image(x, window), tiling.tiles[0], tiling.tiles[1],
                            [&](Val value, int64_t axis, bool second_half) {
                                return Transform(value, axis, second_half,
                                                 tiling.tiles[axis == 1 ? 0 : 1]);
                            });
}

// Two of the positions along an axis that two results of a tile add to.
Val TransformResults(Val results, int64_t axis, bool second_half, const Expr& tiles) {
    if (second_half) {
        return Tiles(results, axis, 0, tiles);
    }
    const Val even = Unsqueeze(SliceAxis(results, axis, 0, tiles, kTile), axis + 1);
    const Val odd = Unsqueeze(SliceAxis(results, axis, 1, tiles, kTile), axis + 1);
    return even + Signs(results.builder(), even.rank(), axis + 1) * odd;
}

// Channels last, in three parts, so that it lies in memory: transforms read it several times.
Val ChannelsLast(Val image) {
    const Val last = Permute(image, {0, 2, 3, 1});
    const Expr third = FloorDiv(last.dim(1), 3);
    return Concat({SliceAxis(last, 1, 0, third), SliceAxis(last, 1, third, third),
                   SliceAxis(last, 1, 2 * third, last.dim(1) - 2 * third)},
                  1);
}

// `weights` are transformed, and labels are those of the products.
Val ConvolveTransformed(Val x,
                        Val weights,
                        const Expr& outputs,
                        std::string_view labels,
                        const SpatialWindow& window) {
    const Expr batch = x.dim(0);
    const Tiling tiling = TilingOf(x, window);
    const auto& [size, tiles] = tiling;
    const Val sums = Contract(TransformedImage(x, window, tiling), weights, labels);
    const Val parted =
        Reshape(sums, Shape{kTile, kTile, kTile, kTile, batch, tiles[0], tiles[1], outputs});
    const Val results = Restore(Restore(parted, 2), 2);  // [row, column, batch, rows, columns, out]
    const Val all = Reshape(Permute(results, {2, 3, 0, 4, 1, 5}),
                            Shape{batch, tiles[0] * kTile, tiles[1] * kTile, outputs});
    return Permute(Slice(all, {0, 0, 0, 0}, {1, 1, 1, 1}, Shape{batch, size[0], size[1], outputs}),
                   {0, 3, 1, 2});
}

}  // namespace

bool IsWinogradFaster(double tiles, double channels, double outputs, WeightSource source) {
    const double saved = tiles * channels * outputs * kSavedOperations;
    const double bytes =
        tiles * (channels + outputs) * kBytesOfTile +
        (source == WeightSource::kConstant ? 0 : channels * outputs * kBytesOfTransformed);
    const double per_byte = bytes <= kCacheBytes ? kOperationsPerCachedByte : kOperationsPerByte;
    return tiles >= kLeastTiles && std::min(channels, outputs) >= kLeastChannels &&
           bytes <= kMostBytes && saved >= kLeastSaved && saved >= 2 * bytes * per_byte;
}

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

Val WinogradWeightGradient(Val gradient, Val x, const SpatialWindow& window) {
    constexpr int64_t kPlaces = kWindow * kWindow;
    const Tiling tiling = TilingOf(x, window);
    const auto& [size, tiles] = tiling;
    const Val whole = Pad(gradient, 0, {0, 0, 0, 0},
                          {0, 0, tiles[0] * kTile - size[0], tiles[1] * kTile - size[1]});
    const Val results = TransformedTiles(
        ChannelsLast(whole), tiles[0], tiles[1], [&](Val value, int64_t axis, bool second_half) {
            return TransformResults(value, axis, second_half, tiles[axis == 1 ? 0 : 1]);
        });
    const Val sums =
        Contract(results, TransformedImage(Permute(ChannelsLast(x), {0, 3, 1, 2}), window, tiling),
                 "pnrco,pnrcd->pod");
    std::vector<float> factors;
    for (int64_t pair = 0; pair < kPairs; ++pair) {
        for (size_t place = 0; place < kPlaces; ++place) {
            factors.push_back(static_cast<float>(OfWeights(pair, place)));
        }
    }
    const Val matrix = x.builder().Constant(Tensor::FromFloats({kPairs, kPlaces}, factors));
    return Reshape(Contract(sums, matrix, "pod,pk->odk", ElementType::kF32),
                   Shape{gradient.dim(1), x.dim(1), kWindow, kWindow});
}

}  // namespace fornax::graph
