// Softmax along one axis, for short axes: each invocation normalises one line.
//
// The maximum is subtracted first, so that no exponential overflows. Bindings: input, output, both
// [kOuter, kAxis, kInner]. Grid: x and z count lines.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shaders/include/workgroup.glsl"
#include "shaders/include/axis.glsl"

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float y[]; };

void main() {
    uint line = LinearIndex();
    if (line >= kOuter * kInner)
        return;
    uint start = LineStart(line);
    float greatest = x[start];
    for (uint i = 1; i < kAxis; ++i)
        greatest = max(greatest, x[start + i * kInner]);
    float sum = 0.0;
    for (uint i = 0; i < kAxis; ++i)
        sum += exp(x[start + i * kInner] - greatest);
    float scale = 1.0 / sum;
    for (uint i = 0; i < kAxis; ++i)
        y[start + i * kInner] = exp(x[start + i * kInner] - greatest) * scale;
}
