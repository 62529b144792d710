// The attributes that convolutions and pools share.
#pragma once

#include "compiler/frontends/onnx/node.h"
#include "compiler/graph/build/convolve.h"

namespace fornax::onnx_frontend {

graph::AutoPad ReadAutoPad(Node& node);
// Strides, dilations, pads and kernel_shape, or the window of the weights `w`, if that is not
// nothing, which are [out, in, window...]. auto_pad is applied to the input.
graph::SpatialWindow ReadWindow(Node& node, Val x, Val w);
// The window of a pool, and what ceil_mode adds behind each axis.
graph::SpatialWindow ReadPoolWindow(Node& node, Val x, std::vector<graph::Expr>& extra);

}  // namespace fornax::onnx_frontend
