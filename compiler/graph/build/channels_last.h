// Convolutions whose results have channels last, by weights that each run has others of.
#pragma once

#include <cstdint>

#include "compiler/graph/build/builder.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::graph {

// Whether it pays to put weights of a run into the order in which constant ones lie, with out
// channels side by side: if so many places multiply them, and a sum is so short, that the product
// is computed in registers and reads the image where it lies.
bool IsChannelsLastFaster(double places, double outputs, double products);

// A convolution of one group of x [batch, channels, height, width] by weights [out channels,
// channels, ...], both f32 and of known sizes. The weights are copied in another order; the result
// [batch, out channels, height, width] is a view of one with channels last.
Val ConvolveChannelsLast(Val x, Val weights, const SpatialWindow& window);

}  // namespace fornax::graph
