#version 450
// Every integer atomic, on a buffer by all workgroups and on shared memory by each. What is left
// in memory must not depend on the order; what is returned is summed up or marks its own place.
layout(local_size_x = 96) in;
struct Cells {
    uint add; uint umin; uint umax; int smin; int smax; uint and_; uint or_; uint xor_;
    uint exchange; uint returned; uint product; int sub;
};
layout(set = 0, binding = 0) readonly buffer In { uint words[]; };
layout(set = 0, binding = 1) buffer Global { Cells cells; };
layout(set = 0, binding = 2) writeonly buffer Local { Cells results[]; };
layout(set = 0, binding = 3) buffer Tickets { uint tickets[]; };
shared Cells group;
#define ALL(c)                                                        \
    ticket = atomicAdd(c.add, 1u);                                    \
    atomicMin(c.umin, word);                                          \
    atomicMax(c.umax, word);                                          \
    atomicMin(c.smin, int(word));                                     \
    atomicMax(c.smax, int(word));                                     \
    atomicAnd(c.and_, word | 0xff00u);                                \
    atomicOr(c.or_, word & 0xf0f0u);                                  \
    atomicXor(c.xor_, word);                                          \
    atomicAdd(c.returned, atomicExchange(c.exchange, word));          \
    atomicAdd(c.sub, -int(word & 0xffu));                             \
    for (expected = 1u;;) {                                            \
        uint seen = atomicCompSwap(c.product, expected, expected * (word | 1u)); \
        if (seen == expected)                                         \
            break;                                                    \
        expected = seen;                                              \
    }
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint word = words[i];
    uint ticket;
    uint expected;
    if (gl_LocalInvocationIndex == 0u)
        group = Cells(0u, 0xffffffffu, 0u, 0x7fffffff, -0x7fffffff, 0xffffffffu, 0u, 0u, 0u, 0u, 1u,
                      0);
    barrier();
    ALL(cells)
    atomicAdd(tickets[ticket], 1u);
    ALL(group)
    atomicAdd(tickets[words.length() + gl_WorkGroupID.x * 96u + ticket], 1u);
    barrier();
    if (gl_LocalInvocationIndex == 95u)
        results[gl_WorkGroupID.x] = group;
}
