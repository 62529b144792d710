// Sum, mean, maximum or minimum along one axis: each invocation reduces one line.
//
// Bindings: input [kOuter, kAxis, kInner], output [kOuter, kInner]. Grid: x and z count lines.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shaders/include/workgroup.glsl"
#include "shaders/include/axis.glsl"

layout(constant_id = 5) const uint kKind = 0;  // a graph::op::ReduceKind

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float y[]; };

void main() {
    uint line = LinearIndex();
    if (line >= kOuter * kInner)
        return;
    uint start = LineStart(line);
    float result = x[start];
    for (uint i = 1; i < kAxis; ++i) {
        float value = x[start + i * kInner];
        if (kKind < 2)
            result += value;
        else
            result = kKind == 2 ? max(result, value) : min(result, value);
    }
    y[line] = kKind == 1 ? result / float(kAxis) : result;
}
