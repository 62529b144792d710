#version 450
// A uniform block beside a buffer of one set, and a buffer of another.
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint values[]; } result;
layout(set = 0, binding = 1) uniform Block { uint base; uvec4 more; } block;
layout(set = 1, binding = 0) readonly buffer In { uint values[]; } source;

void main() {
    uint i = gl_LocalInvocationIndex;
    result.values[i] = block.base + source.values[i] + block.more[i % 4u];
}
