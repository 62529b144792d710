// Convolution and pooling: parameters from shapes, and the choice between the convolution kernels.
#include "compiler/legacy_graph/lowering/emitter.h"

namespace fornax::legacy_graph {
namespace {

parameters::Window ToParameters(const Window& window, const Shape& input, const Shape& output) {
    parameters::Window p;
    p.images = input[0];
    p.channels = input[1];
    p.height = input[2];
    p.width = input[3];
    p.out_height = output[2];
    p.out_width = output[3];
    p.kernel_height = window.kernel[0];
    p.kernel_width = window.kernel[1];
    p.stride_y = window.strides[0];
    p.stride_x = window.strides[1];
    p.dilation_y = window.dilations[0];
    p.dilation_x = window.dilations[1];
    p.pad_top = window.pads[0];
    p.pad_left = window.pads[1];
    return p;
}

}  // namespace

Status Lower(const op::Conv& conv, Emitter& emitter) {
    parameters::Conv2d p;
    p.activation = parameters::Activation(conv.activation);
    p.window = ToParameters(conv.window, emitter.OperandShape(0), emitter.ResultShape());
    p.out_channels = emitter.ResultShape()[1];
    p.groups = conv.group;
    p.has_bias = emitter.operand_count() == 3;
    // A tile of eight channels pays off as soon as half of it is used.
    const bool few_channels = p.out_channels / p.groups < 4;
    const uint32_t bias = p.has_bias ? emitter.Operand(2) : emitter.Operand(1);
    return emitter.Emit(few_channels ? KernelId::kConv2dDepthwise : KernelId::kConv2d, ToWords(p),
                        {emitter.Operand(0), emitter.Operand(1), bias, emitter.ResultTensor()});
}

Status Lower(const op::Pool& pool, Emitter& emitter) {
    parameters::Pool2d p;
    p.window = ToParameters(pool.window, emitter.OperandShape(0), emitter.ResultShape());
    p.kind = static_cast<uint32_t>(pool.kind);
    p.count_pads = pool.count_include_pad;
    p.pad_bottom = pool.window.pads[2];
    p.pad_right = pool.window.pads[3];
    return emitter.Emit(KernelId::kPool2d, ToWords(p),
                        {emitter.Operand(0), emitter.ResultTensor()});
}

}  // namespace fornax::legacy_graph
