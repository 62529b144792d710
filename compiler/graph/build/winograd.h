// Convolutions of 3 x 3 with fewer multiplications: Winograd's F(2 x 2, 3 x 3).
#pragma once

#include "compiler/graph/build/builder.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::graph {

// A convolution of stride 1 of x [batch, channels, height, width] by constant weights
// [out channels, channels, 3, 3], both f32. Four results of a channel take 16 multiplications
// instead of 36. Its rounding errors are others than those of Convolve().
Val ConvolveWinograd(Val x, const Tensor& weights, const SpatialWindow& window);

}  // namespace fornax::graph
