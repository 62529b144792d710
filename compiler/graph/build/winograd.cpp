// The four positions along an axis are d2 + d1, d2 - d1, d2 - d0 and d3 - d1, and the results are
// m1 + m2 + m0 and m1 - m2 + m3; signs are in the weights (Lavin and Gray, Fast Algorithms for
// Convolutional Neural Networks, section 4.1). What is transformed is a concatenation of all
// positions, which read the same elements and so have one kernel, that loads each element once.
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
// Positions over both axes are numbered by halves of rows and of columns, then by places in them.
constexpr int64_t kPairs = kPositions * kPositions;

constexpr int64_t RowPosition(int64_t pair) {
    return pair / 8 * 2 + pair / 2 % 2;
}
constexpr int64_t ColumnPosition(int64_t pair) {
    return pair / 4 % 2 * 2 + pair % 2;
}

// One of the positions along an axis of 2 * tiles + 2 elements, which becomes one of tiles.
Val ImagePosition(Val image, int64_t axis, int64_t position, const Expr& tiles) {
    const auto at = [&](int64_t place) { return SliceAxis(image, axis, place, tiles, kTile); };
    switch (position) {
        case 0:
            return at(2) + at(1);
        case 1:
            return at(2) - at(1);
        case 2:
            return at(2) - at(0);
        default:
            return at(3) - at(1);
    }
}

// The same of an axis of 2 * tiles results, which add to the positions.
Val ResultPosition(Val results, int64_t axis, int64_t position, const Expr& tiles) {
    const auto at = [&](int64_t place) { return SliceAxis(results, axis, place, tiles, kTile); };
    switch (position) {
        case 0:
            return at(0) + at(1);
        case 1:
            return at(0) - at(1);
        case 2:
            return at(0);
        default:
            return at(1);
    }
}

// 1 and -1 along an axis of two, for values of this rank.
Val Signs(Builder& b, int64_t rank, int64_t axis) {
    std::vector<Expr> dims(static_cast<size_t>(rank), Expr(1));
    dims[static_cast<size_t>(axis)] = kTile;
    return 1.0 - 2.0 * b.Iota(ElementType::kF32, Shape(dims), axis);
}

// The results along an axis from sums [halves, ..., positions, ...].
Val Restore(Val sums, int64_t positions) {
    const Val first = Select(sums, 0, 0), second = Select(sums, 0, 1);
    const int64_t axis = positions - 1;
    const Val even = SliceAxis(first, axis, 0, 1), odd = SliceAxis(first, axis, 1, 1);
    return even + Signs(sums.builder(), first.rank(), axis) * odd + second;
}

// What an element of a window adds to a position.
double OfWeights(int64_t pair, size_t place) {
    return kOfWeights[RowPosition(pair)][place / kWindow] *
           kOfWeights[ColumnPosition(pair)][place % kWindow];
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

// The positions along an axis of a window's elements.
std::array<Val, kPositions> WindowPositions(const std::array<Val, kWindow>& window) {
    const Val ends = (window[0] + window[2]) * 0.5, middle = window[1] * 0.5;
    return {ends + middle, ends - middle, -window[0], window[2]};
}

// The elements of a window along an axis that its positions are made of, in reverse: what the
// gradients of the positions add to them.
std::array<Val, kWindow> FromPositions(const std::array<Val, kPositions>& positions) {
    const Val half = (positions[0] + positions[1]) * 0.5;
    return {half - positions[2], (positions[0] - positions[1]) * 0.5, half + positions[3]};
}

// The same of weights that are not constant, as [positions, channels, out channels].
Val TransformWeights(Val weights, WeightOrder order) {
    const bool is_mirrored = order == WeightOrder::kTransposed;
    // By the row's position, then by columns: [1, channels, out channels].
    std::array<std::array<Val, kWindow>, kPositions> by_row;
    for (int64_t column = 0; column < kWindow; ++column) {
        std::array<Val, kWindow> elements;
        for (int64_t row = 0; row < kWindow; ++row) {
            const int64_t y = is_mirrored ? kWindow - 1 - row : row;
            const int64_t x = is_mirrored ? kWindow - 1 - column : column;
            const Val element = Select(Select(weights, 3, x), 2, y);
            elements[row] = Unsqueeze(is_mirrored ? element : Permute(element, {1, 0}), 0);
        }
        const std::array<Val, kPositions> positions = WindowPositions(elements);
        for (size_t position = 0; position < kPositions; ++position) {
            by_row[position][column] = positions[position];
        }
    }
    std::array<std::array<Val, kPositions>, kPositions> positions;
    std::ranges::transform(by_row, positions.begin(), &WindowPositions);
    Vals all;
    for (int64_t pair = 0; pair < kPairs; ++pair) {
        all.push_back(positions[RowPosition(pair)][ColumnPosition(pair)]);
    }
    return Concat(all, 0);
}

// The gradient by weights from that by their positions [positions, out channels, channels].
Val RestoreWeights(Val sums) {
    std::array<std::array<Val, kPositions>, kPositions> by_column;
    for (int64_t pair = 0; pair < kPairs; ++pair) {
        by_column[ColumnPosition(pair)][RowPosition(pair)] = Select(sums, 0, pair);
    }
    std::array<std::array<Val, kWindow>, kPositions> rows;
    std::ranges::transform(by_column, rows.begin(), &FromPositions);
    Vals all;
    for (size_t row = 0; row < kWindow; ++row) {
        const std::array<Val, kWindow> window =
            FromPositions({rows[0][row], rows[1][row], rows[2][row], rows[3][row]});
        all.insert(all.end(), window.begin(), window.end());
    }
    return Reshape(Stack(all, 2), Shape{sums.dim(1), sums.dim(2), kWindow, kWindow});
}

// The positions of a channels-last image's tiles, [pairs, batch, rows, columns, channels], where
// transform(value, axis, position) has one along an axis.
template <typename T>
Val TransformedTiles(Val image, const T& transform) {
    std::array<Val, kPositions> rows;
    for (int64_t position = 0; position < kPositions; ++position) {
        rows[position] = transform(image, 1, position);
    }
    Vals all;
    for (int64_t pair = 0; pair < kPairs; ++pair) {
        const Val row = rows[RowPosition(pair)];
        all.push_back(transform(row, 2, ColumnPosition(pair)));
    }
    return Stack(all, 0);
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
    return TransformedTiles(
        tiling.Image(x, window), [&](Val value, int64_t axis, int64_t position) {
            return ImagePosition(value, axis, position, tiling.tiles[axis == 1 ? 0 : 1]);
        });
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
    const Tiling tiling = TilingOf(x, window);
    const auto& [size, tiles] = tiling;
    const Val whole = Pad(gradient, 0, {0, 0, 0, 0},
                          {0, 0, tiles[0] * kTile - size[0], tiles[1] * kTile - size[1]});
    const Val results =
        TransformedTiles(ChannelsLast(whole), [&](Val value, int64_t axis, int64_t position) {
            return ResultPosition(value, axis, position, tiles[axis == 1 ? 0 : 1]);
        });
    const Val sums =
        Contract(results, TransformedImage(Permute(ChannelsLast(x), {0, 3, 1, 2}), window, tiling),
                 "pnrco,pnrcd->pod");
    return RestoreWeights(sums);
}

}  // namespace fornax::graph
