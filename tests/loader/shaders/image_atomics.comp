#version 460
// Atomics on texels, some of which are outside.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, r32ui) uniform uimage2D sums;
layout(set = 0, binding = 1, r32i) uniform iimage2DArray extremes;
layout(set = 0, binding = 2, r32ui) uniform uimageBuffer counters;
layout(set = 0, binding = 3) buffer Out { uint old[]; };
void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    uint i = at.y * 32 + at.x;
    imageAtomicAdd(sums, ivec2(at.x / 2, at.y), i);
    imageAtomicMax(extremes, ivec3(at.x % 4, 0, at.y % 4), int(i) - 500);
    imageAtomicMin(extremes, ivec3(at.x % 4, 1, at.y % 4), int(i) - 500);
    old[i] = imageAtomicAdd(counters, int(i % 16), 1u);
    if (imageAtomicCompSwap(sums, ivec2(100, at.y), 0u, 7u) != 0u)
        old[i] = 9999u;
}
