// A pass that reads 64 bytes an invocation from memory, a barrier, and one that computes with the sums for as long as
// is asked for: how much of the time of memory passes beside computation behind a barrier.
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer In {
    vec4 from[];
};
layout(set = 0, binding = 1) writeonly buffer Out {
    float to[];
};
layout(push_constant) uniform Parameters {
    uint steps;
    float factor;
    float addend;
};

shared float partial[256];

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint start = gl_WorkGroupID.x * 1024 + thread;
    vec4 sum = (from[start] + from[start + 256]) + (from[start + 512] + from[start + 768]);
    partial[thread] = (sum.x + sum.y) + (sum.z + sum.w);
    barrier();
    float c0 = partial[255 - thread];
    float c1 = c0 + 1.0;
    float c2 = c0 + 2.0;
    float c3 = c0 + 3.0;
    float c4 = c0 + 4.0;
    float c5 = c0 + 5.0;
    float c6 = c0 + 6.0;
    float c7 = c0 + 7.0;
    for (uint step = 0; step < steps; ++step) {
        c0 = fma(c0, factor, addend);
        c1 = fma(c1, factor, addend);
        c2 = fma(c2, factor, addend);
        c3 = fma(c3, factor, addend);
        c4 = fma(c4, factor, addend);
        c5 = fma(c5, factor, addend);
        c6 = fma(c6, factor, addend);
        c7 = fma(c7, factor, addend);
    }
    to[gl_WorkGroupID.x * 256 + thread] = ((c0 + c1) + (c2 + c3)) + ((c4 + c5) + (c6 + c7));
}
