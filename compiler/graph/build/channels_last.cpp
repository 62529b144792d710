#include "compiler/graph/build/channels_last.h"

#include "compiler/graph/build/weight_gradient.h"

namespace fornax::graph {
namespace {

// A copied weight costs about as much as a few hundred of its multiplications gain.
constexpr double kLeastPlaces = 512;
// Fewer columns leave registers of 16 empty.
constexpr double kLeastOutputs = 16;
// Longer sums, and more weights than the second cache holds beside the rest, are products of
// matrices (loop/emit_register_product.cpp), which were half as fast with channels last.
constexpr double kMostProducts = 256;
constexpr double kMostWeights = 96 << 10;

}  // namespace

bool IsChannelsLastFaster(double places, double outputs, double products) {
    return places >= kLeastPlaces && outputs >= kLeastOutputs && products <= kMostProducts &&
           products * outputs <= kMostWeights;
}

Val ConvolveChannelsLast(Val x, Val weights, const SpatialWindow& window) {
    const Shape shape = weights.shape();
    // Sums go through the channels of a place first, which lie side by side in most images.
    const Val rows = Flatten(Permute(weights, {2, 3, 1, 0}), 0, 3);
    const Val matrix = Reshape(MatrixInMemory(rows, *rows.dim(0).constant()),
                               Shape{shape[2], shape[3], shape[1], shape[0]});
    Val image =
        Pad(x, 0, {0, 0, window.low[0], window.low[1]}, {0, 0, window.high[0], window.high[1]});
    for (size_t i = 0; i < window.rank(); ++i) {
        image = Window(image, static_cast<int64_t>(i) + 2, window.size[i], window.strides[i],
                       window.dilations[i]);
    }
    // [batch, height, width, window's height and width, channels]
    const Val windows = Permute(image, {0, 2, 3, 4, 5, 1});
    return Permute(Contract(windows, matrix, "nyxabd,abdo->nyxo", ElementType::kF32), {0, 3, 1, 2});
}

}  // namespace fornax::graph
