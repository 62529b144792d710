// Max and average pooling: each invocation computes one output value; lanes follow the output's order.
//
// Bindings: input [N,C,H,W], output [N,C,OH,OW]. Grid: x and z count output values.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shaders/include/workgroup.glsl"
#include "shaders/include/window.glsl"

layout(constant_id = 19) const uint kKind = 0;           // 0 maximum, 1 average
layout(constant_id = 20) const bool kCountPads = false;  // an average counts padding as zeros
layout(constant_id = 21) const uint kPadBottom = 0;
layout(constant_id = 22) const uint kPadRight = 0;

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float y[]; };

void main() {
    uint index = LinearIndex();
    if (index >= kImages * kChannels * kOutPlane)
        return;
    uvec2 corner = WindowCorner(index % kOutPlane);
    uint plane = index / kOutPlane * kPlane;

    float result = kKind == 0 ? uintBitsToFloat(0xff800000u) : 0.0;  // minus infinity
    uint count = 0;
    for (uint ky = 0; ky < kKernelHeight; ++ky) {
        uint row = corner.y + ky * kDilationY;
        for (uint kx = 0; kx < kKernelWidth; ++kx) {
            uint column = corner.x + kx * kDilationX;
            // A window of ceil mode may reach beyond the padding: that part is never counted.
            if (kCountPads && row + kPadTop < kHeight + kPadTop + kPadBottom &&
                column + kPadLeft < kWidth + kPadLeft + kPadRight)
                ++count;
            if (row < kHeight && column < kWidth) {
                float value = x[plane + row * kWidth + column];
                result = kKind == 0 ? max(result, value) : result + value;
                if (!kCountPads)
                    ++count;
            }
        }
    }
    y[index] = kKind == 0 ? result : result / float(count);
}
