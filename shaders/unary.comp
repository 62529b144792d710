// A function of one value, applied to every element. Bindings: input, output, of kElements each. Grid: x and
// z count elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shaders/include/workgroup.glsl"
#include "shaders/include/activation.glsl"

layout(constant_id = 5) const uint kElements = 1;

layout(set = 0, binding = 0) readonly buffer Input { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float y[]; };

void main() {
    uint index = LinearIndex();
    if (index < kElements)
        y[index] = Activate(x[index]);
}
