// Histograms of 256 bins, one for each workgroup's part of the data, by atomics in shared memory.
#version 450
const uint THREADS = 256;
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer Data {
    uint data[];
};
layout(set = 0, binding = 1) writeonly buffer Histograms {
    uint histograms[];
};
layout(push_constant) uniform Parameters {
    uint part;
};

shared uint bins[THREADS];

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint start = gl_WorkGroupID.x * part;
    bins[thread] = 0;
    barrier();
    for (uint i = thread; i < part; i += THREADS)
        atomicAdd(bins[data[start + i] & 255u], 1);
    barrier();
    histograms[gl_WorkGroupID.x * THREADS + thread] = bins[thread];
}
