#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_atomic_float : require
#extension GL_EXT_shader_atomic_float2 : require
// Atomics on 64-bit integers and on floats, on a buffer by all workgroups and on shared memory by
// each: at one place for all invocations and at a place of each one's own. What is left in memory
// does not depend on the order; what is returned marks its own place or is summed up.
layout(local_size_x = 96) in;
struct Cells {
    uint64_t add; uint64_t umin; uint64_t umax; int64_t smin; int64_t smax; uint64_t and_;
    uint64_t or_; uint64_t xor_; uint64_t exchange; uint64_t returned; uint64_t swaps;
    double dadd; double dmin; double dmax; double dexchange; double dreturned;
    float fadd; float fmin; float fmax; float fexchange; float freturned;
    float bins[8]; uint64_t wide_bins[8];
    float16_t hadd; float16_t hmin; float16_t hmax; float16_t hexchange; float16_t hbins[8];
};
layout(set = 0, binding = 0, std430) readonly buffer In { uint words[]; };
layout(set = 0, binding = 1, std430) buffer Global { Cells cells; };
layout(set = 0, binding = 2, std430) buffer Local { Cells results[]; };
layout(set = 0, binding = 3, std430) buffer Tickets { uint tickets[]; };
shared Cells group;
#define ALL(c)                                                                    \
    ticket = uint(atomicAdd(c.add, uint64_t(1)));                                 \
    atomicMin(c.umin, wide);                                                      \
    atomicMax(c.umax, wide);                                                      \
    atomicMin(c.smin, int64_t(wide));                                             \
    atomicMax(c.smax, int64_t(wide));                                             \
    atomicAnd(c.and_, wide | 0xff00000000ul);                                     \
    atomicOr(c.or_, wide & 0xf0f0f0f0f0ul);                                       \
    atomicXor(c.xor_, wide);                                                      \
    atomicAdd(c.returned, atomicExchange(c.exchange, wide));                      \
    for (uint64_t expected = 1ul;;) {                                             \
        uint64_t seen = atomicCompSwap(c.swaps, expected, expected * (wide | 1ul)); \
        if (seen == expected)                                                     \
            break;                                                                \
        expected = seen;                                                          \
    }                                                                             \
    atomicAdd(c.dadd, double(small));                                             \
    atomicMin(c.dmin, double(number));                                            \
    atomicMax(c.dmax, double(number));                                            \
    atomicAdd(c.dreturned, atomicExchange(c.dexchange, double(small)));           \
    atomicAdd(c.fadd, float(small));                                              \
    atomicMin(c.fmin, number);                                                    \
    atomicMax(c.fmax, number);                                                    \
    atomicAdd(c.freturned, atomicExchange(c.fexchange, float(small)));            \
    atomicAdd(c.bins[small & 7u], 1.0);                                           \
    atomicAdd(c.wide_bins[small & 7u], wide);                                     \
    if ((small & 1u) != 0u)                                                       \
        atomicAdd(c.hadd, float16_t(1));                                          \
    atomicMin(c.hmin, float16_t(number));                                         \
    atomicMax(c.hmax, float16_t(number));                                         \
    atomicMax(c.hexchange, atomicExchange(c.hbins[7], float16_t(0)));             \
    atomicAdd(c.hbins[small % 7u], float16_t(1));
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint64_t wide = uint64_t(words[i]) << 20 ^ uint64_t(words[i] * 77u) << 45;
    uint small = words[i] >> 8 & 255u;
    float number = float(small) - 100.0;
    uint ticket;
    if (gl_LocalInvocationIndex == 0u)
        group = results[gl_WorkGroupID.x];
    barrier();
    ALL(cells)
    atomicAdd(tickets[ticket], 1u);
    ALL(group)
    atomicAdd(tickets[words.length() + gl_WorkGroupID.x * 96u + ticket], 1u);
    barrier();
    if (gl_LocalInvocationIndex == 95u)
        results[gl_WorkGroupID.x] = group;
}
