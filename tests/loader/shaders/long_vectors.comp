#version 450
// Vectors of 11 and of N components, in memory, computed with, indexed and compared.
#extension GL_EXT_long_vector : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 32) in;
layout(constant_id = 0) const uint N = 6;
layout(set = 0, binding = 0, scalar) readonly buffer In { vector<float, 11> vectors[]; };
layout(set = 0, binding = 1, scalar) writeonly buffer Out { vector<float, 11> results[]; };
layout(set = 0, binding = 2) writeonly buffer Sums { uint sums[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    vector<float, 11> v = vectors[i];
    vector<float, 11> w = max(v * 2.0 - vector<float, 11>(3.0), v);
    w[i % 11u] += 0.5;
    results[i] = w;
    vector<uint, N> special = vector<uint, N>(i + 1u);
    special[i % N] = 0u;
    uint sum = 0u;
    for (uint k = 0u; k < N; ++k)
        sum += special[k] * (k + 1u);
    sums[i] = sum + uint(dot(v, vector<float, 11>(1.0)));
}
