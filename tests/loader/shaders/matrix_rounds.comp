#version 450
// A product of large matrices as clients write it: a workgroup brings tiles of both into workgroup
// memory, round after round, and each of its four subgroups adds up 4 x 4 matrices. How many rounds there
// are is known at run time only.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma use_vulkan_memory_model
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kThreads = 128;
layout(constant_id = 1) const uint kDepth = 32;  // of a round
layout(set = 0, binding = 0) readonly buffer A { f16vec4 a[]; };  // 128 rows
layout(set = 0, binding = 1) readonly buffer B { f16vec4 b[]; };  // 128 columns, one after the other
layout(set = 0, binding = 2) writeonly buffer D { float d[]; };   // 128 columns of 128
layout(set = 0, binding = 3) readonly buffer R { uint number; };

const uint kPitch = kDepth + 8;  // elements of a row with padding
shared f16vec4 tile_a[128 * kPitch / 4];
shared f16vec4 tile_b[128 * kPitch / 4];

void main() {
    coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> sums[16];
    [[unroll]] for (uint i = 0; i < 16; ++i)
        sums[i] = coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
    const uint row = gl_SubgroupID % 2 * 64;
    const uint column = gl_SubgroupID / 2 * 64;
    const uint fours = kDepth / 4;
    const uint x = gl_LocalInvocationID.x % fours;
    const uint y = gl_LocalInvocationID.x / fours;
    const uint rounds = number;
    uint position = 0;
    for (uint block = 0; block < rounds * kDepth; block += kDepth) {
        [[unroll]] for (uint l = 0; l < 128; l += kThreads / fours)
            tile_a[(y + l) * (kPitch / 4) + x] = a[position + (y + l) * rounds * fours + x];
        [[unroll]] for (uint l = 0; l < 128; l += kThreads / fours)
            tile_b[(y + l) * (kPitch / 4) + x] = b[position + (y + l) * rounds * fours + x];
        barrier();
        position += fours;
        [[unroll]] for (uint k = 0; k < kDepth; k += 16) {
            [[unroll]] for (uint i = 0; i < 4; ++i) {
                coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> left;
                coopMatLoad(left, tile_a, ((row + i * 16) * kPitch + k) / 4, kPitch / 4,
                            gl_CooperativeMatrixLayoutRowMajor);
                [[unroll]] for (uint j = 0; j < 4; ++j) {
                    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> right;
                    coopMatLoad(right, tile_b, ((column + j * 16) * kPitch + k) / 4, kPitch / 4,
                                gl_CooperativeMatrixLayoutColumnMajor);
                    sums[j * 4 + i] = coopMatMulAdd(left, right, sums[j * 4 + i]);
                }
            }
        }
        barrier();
    }
    [[dont_unroll]] for (uint i = 0; i < 16; ++i)
        coopMatStore(sums[i], d, (column + i / 4 * 16) * 128 + row + i % 4 * 16, 128,
                     gl_CooperativeMatrixLayoutColumnMajor);
}
