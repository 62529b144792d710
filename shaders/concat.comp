// Copies one operand of a concatenation to its place: input [kOuter, kPart], output [kOuter, kRow], where
// kPart values of each row go to position kFirst. Bindings: input, output. Grid: x and z count the input's
// elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shaders/include/workgroup.glsl"

layout(constant_id = 2) const uint kOuter = 1;
layout(constant_id = 3) const uint kPart = 1;
layout(constant_id = 4) const uint kRow = 1;
layout(constant_id = 5) const uint kFirst = 0;

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float y[]; };

void main() {
    uint index = LinearIndex();
    if (index < kOuter * kPart)
        y[index / kPart * kRow + kFirst + index % kPart] = x[index];
}
