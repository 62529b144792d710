// Convolution with few output channels a group (depthwise above all): each invocation computes one output
// value.
//
// Same bindings and specialisation constants as conv2d.comp. Grid: x and z count N*OH*OW pixels, y counts
// output channels.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shaders/include/workgroup.glsl"
#include "shaders/include/activation.glsl"
#include "shaders/include/window.glsl"

layout(constant_id = 19) const uint kOutChannels = 1;
layout(constant_id = 20) const uint kGroups = 1;
layout(constant_id = 21) const bool kHasBias = false;

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) readonly buffer Weight { float w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) writeonly buffer Output { float y[]; };

const uint kGroupChannels = kChannels / kGroups;
const uint kGroupOutChannels = kOutChannels / kGroups;

void main() {
    uint index = LinearIndex();
    if (index >= kImages * kOutPlane)
        return;
    uint image = index / kOutPlane;
    uint pixel = index % kOutPlane;
    uvec2 corner = WindowCorner(pixel);

    uint out_channel = gl_WorkGroupID.y;
    uint group = out_channel / kGroupOutChannels;
    float sum = 0.0;
    if (kHasBias)
        sum = bias[out_channel];
    uint plane = (image * kChannels + group * kGroupChannels) * kPlane;
    uint tap = out_channel * kGroupChannels * kKernelHeight * kKernelWidth;
    for (uint channel = 0; channel < kGroupChannels; ++channel) {
        for (uint ky = 0; ky < kKernelHeight; ++ky) {
            uint row = corner.y + ky * kDilationY;
            for (uint kx = 0; kx < kKernelWidth; ++kx) {
                uint column = corner.x + kx * kDilationX;
                if (row < kHeight && column < kWidth)
                    sum += x[plane + row * kWidth + column] * w[tap];
                ++tap;
            }
        }
        plane += kPlane;
    }
    y[(image * kOutChannels + out_channel) * kOutPlane + pixel] = Activate(sum);
}
