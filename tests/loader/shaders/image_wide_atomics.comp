#version 460
// Atomics on texels of 64-bit integers and of floats, some of which are outside.
#extension GL_EXT_shader_image_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_float : require
#extension GL_EXT_shader_atomic_float2 : require
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, r64ui) uniform u64image2D sums;
layout(set = 0, binding = 1, r64i) uniform i64image2DArray extremes;
layout(set = 0, binding = 2, r64ui) uniform u64imageBuffer counters;
layout(set = 0, binding = 3, r32f) uniform image2D float_sums;
layout(set = 0, binding = 4, r32f) uniform image2DArray float_extremes;
layout(set = 0, binding = 5, r64ui) uniform u64image2D texels;
layout(set = 0, binding = 6) buffer Out { uint64_t old[]; };
layout(set = 0, binding = 7) buffer Floats { float taken[]; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    uint i = at.y * 32 + at.x;
    uint64_t large = uint64_t(i) * 0x100000001ul;
    imageAtomicAdd(sums, ivec2(at.x / 2, at.y), large);
    imageAtomicMax(extremes, ivec3(at.x % 4, 0, at.y % 4), int64_t(large) - 0x1f400000000l);
    imageAtomicMin(extremes, ivec3(at.x % 4, 1, at.y % 4), int64_t(large) - 0x1f400000000l);
    old[i] = imageAtomicAdd(counters, int(i % 16), 0x100000000ul);
    if (imageAtomicCompSwap(sums, ivec2(100, at.y), 0ul, 7ul) != 0ul)
        old[i] = 9999ul;
    // Integers, whose sum does not depend on the order.
    imageAtomicAdd(float_sums, ivec2(at.x / 2, at.y), float(i));
    imageAtomicMax(float_extremes, ivec3(at.x % 4, 0, at.y % 4), float(i) - 500.5);
    imageAtomicMin(float_extremes, ivec3(at.x % 4, 1, at.y % 4), float(i) - 500.5);
    // Each finds what was there, and outside nothing.
    taken[i] = imageAtomicExchange(float_sums, ivec2(at.x, at.y + 20), 1.0);
    // 64-bit texels are read and written, too.
    uint64_t texel = imageLoad(texels, at).x;
    imageStore(texels, at, u64vec4(texel * 3ul + large));
    imageAtomicStore(texels, at + ivec2(0, 24), large, gl_ScopeDevice, 0,
                     gl_SemanticsRelaxed);
    old[i + 32 * 24] = imageAtomicLoad(texels, at + ivec2(0, 24), gl_ScopeDevice, 0,
                                       gl_SemanticsRelaxed);
}
