// The arguments of convolutions and pooling, which their gradients have too.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/frontends/torch/node.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::torch_frontend {

// One number a spatial dimension, of which one stands for all.
std::vector<int64_t> SpatialInts(Node& node, std::string_view name, size_t rank, int64_t otherwise);
// From the arguments stride, padding and dilation, and the weight's shape.
graph::SpatialWindow ConvolutionWindow(Node& node, Val x, Val w);
// From the arguments kernel_size, stride (by default the same), padding and dilation.
graph::SpatialWindow PoolWindow(Node& node, size_t rank);

}  // namespace fornax::torch_frontend
