// Gradients of convolutions by their weights, as products whose operands lie in memory as matrices.
#pragma once

#include <optional>

#include "compiler/graph/build/builder.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::graph {

// The gradient by weights [out channels, channels, height, width] of a convolution of one group, of
// f32: x is [batch, channels, height, width], `gradient` that of the result. Nullopt for other
// ranks and types, where sizes are symbols, and where windows lie in the padding alone.
//
// An infinity in x makes NaNs of the elements that it reaches: some of its multiplications are by
// 0.
std::optional<Val> PlanarWeightGradient(Val gradient, Val x, const SpatialWindow& window);

// Whether that takes less time than convolving x by the gradient.
bool IsPlanarFaster(Val gradient, Val x, const SpatialWindow& window);

// The same with a copy of what each window meets, [places, channels * height * width], which one
// product multiplies. No element is multiplied by a 0 that the convolution has not.
std::optional<Val> WindowCopyWeightGradient(Val gradient, Val x, const SpatialWindow& window);

// Whether that takes less time than convolving x by the gradient: for small images.
bool IsWindowCopyFaster(Val gradient, Val x, const SpatialWindow& window);

}  // namespace fornax::graph
