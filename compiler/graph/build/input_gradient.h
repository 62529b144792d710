// Gradients of convolutions by their input, as products whose operands lie in memory as matrices.
#pragma once

#include <optional>

#include "compiler/graph/build/builder.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::graph {

// The gradient by the image [batch, channels, `size`...] of a convolution of one group, of f32:
// `gradient` is that of the result, w [out channels, channels, height, width]. One product of
// places by weights, which are read as they lie, has what each place adds to its window; the image
// takes the sums of these. Nullopt for other ranks and types, and where sizes are symbols.
std::optional<Val> WindowSumInputGradient(Val gradient,
                                          Val w,
                                          const SpatialWindow& window,
                                          const Shape& image);

// Whether that takes less time than a transposed convolution.
bool IsWindowSumFaster(Val gradient, Val w, const SpatialWindow& window);

}  // namespace fornax::graph
