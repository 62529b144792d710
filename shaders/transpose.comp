// Permutes axes: each invocation copies one element; lanes follow the output's order.
//
// Bindings: input, output. Specialisation constants 5 to 10 are the output's dimensions, 11 to 16 the strides
// in the input, in elements, of the output's axes. Grid: x and z count elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shaders/include/workgroup.glsl"
#include "shaders/include/strided.glsl"

layout(constant_id = 11) const uint kStride0 = 0;
layout(constant_id = 12) const uint kStride1 = 0;
layout(constant_id = 13) const uint kStride2 = 0;
layout(constant_id = 14) const uint kStride3 = 0;
layout(constant_id = 15) const uint kStride4 = 0;
layout(constant_id = 16) const uint kStride5 = 0;

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float y[]; };

void main() {
    uint index = LinearIndex();
    if (index < kElements)
        y[index] = x[Offset(Split(index), uvec3(kStride0, kStride1, kStride2),
                            uvec3(kStride3, kStride4, kStride5))];
}
