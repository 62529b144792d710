#version 450
// Resources of sets, which the test maps to descriptor heaps.
layout(local_size_x = 32) in;
layout(set = 3, binding = 4) readonly buffer In { uint values[]; } sources[2];
layout(set = 3, binding = 6) writeonly buffer Out { uint values[]; } result;
layout(set = 1, binding = 0) uniform Block { uvec4 more; } block;

void main() {
    uint i = gl_LocalInvocationIndex;
    result.values[i] = sources[0].values[i] + 10u * sources[1].values[i] + block.more[i % 4u];
}
