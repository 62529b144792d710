// Convolution with groups: each invocation computes eight output channels of one pixel.
//
// Lanes follow pixels, which are contiguous in the input and the output; the weights that a step uses are
// the same for all lanes. Bindings: input [N,C,H,W], weight [M,C/G,KH,KW], bias [M], output [N,M,OH,OW].
// Grid: x and z count N*OH*OW pixels, y counts tiles of eight channels, group by group.
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

const uint kTile = 8;
const uint kGroupChannels = kChannels / kGroups;
const uint kGroupOutChannels = kOutChannels / kGroups;
const uint kGroupTiles = (kGroupOutChannels + kTile - 1) / kTile;
const uint kFilter = kGroupChannels * kKernelHeight * kKernelWidth;

void Store(uint image, uint channel, uint end, uint pixel, float value) {
    if (channel < end)
        y[(image * kOutChannels + channel) * kOutPlane + pixel] = Activate(value);
}

void main() {
    uint index = LinearIndex();
    if (index >= kImages * kOutPlane)
        return;
    uint image = index / kOutPlane;
    uint pixel = index % kOutPlane;
    uvec2 corner = WindowCorner(pixel);

    uint group = gl_WorkGroupID.y / kGroupTiles;
    uint first = group * kGroupOutChannels + gl_WorkGroupID.y % kGroupTiles * kTile;
    uint end = (group + 1) * kGroupOutChannels;
    // A last, partial tile computes its last channel several times and stores it once.
    uvec4 low = min(uvec4(first, first + 1, first + 2, first + 3), uvec4(end - 1));
    uvec4 high = min(uvec4(first + 4, first + 5, first + 6, first + 7), uvec4(end - 1));
    uvec4 low_filter = low * kFilter;
    uvec4 high_filter = high * kFilter;

    vec4 low_sum = vec4(0.0);
    vec4 high_sum = vec4(0.0);
    if (kHasBias) {
        low_sum = vec4(bias[low.x], bias[low.y], bias[low.z], bias[low.w]);
        high_sum = vec4(bias[high.x], bias[high.y], bias[high.z], bias[high.w]);
    }
    uint plane = (image * kChannels + group * kGroupChannels) * kPlane;
    uint tap = 0;
    for (uint channel = 0; channel < kGroupChannels; ++channel) {
        for (uint ky = 0; ky < kKernelHeight; ++ky) {
            uint row = corner.y + ky * kDilationY;
            for (uint kx = 0; kx < kKernelWidth; ++kx) {
                uint column = corner.x + kx * kDilationX;
                float value = 0.0;
                if (row < kHeight && column < kWidth)
                    value = x[plane + row * kWidth + column];
                low_sum += value * vec4(w[low_filter.x + tap], w[low_filter.y + tap],
                                        w[low_filter.z + tap], w[low_filter.w + tap]);
                high_sum += value * vec4(w[high_filter.x + tap], w[high_filter.y + tap],
                                         w[high_filter.z + tap], w[high_filter.w + tap]);
                ++tap;
            }
        }
        plane += kPlane;
    }
    Store(image, first, end, pixel, low_sum.x);
    Store(image, first + 1, end, pixel, low_sum.y);
    Store(image, first + 2, end, pixel, low_sum.z);
    Store(image, first + 3, end, pixel, low_sum.w);
    Store(image, first + 4, end, pixel, high_sum.x);
    Store(image, first + 5, end, pixel, high_sum.y);
    Store(image, first + 6, end, pixel, high_sum.z);
    Store(image, first + 7, end, pixel, high_sum.w);
}
