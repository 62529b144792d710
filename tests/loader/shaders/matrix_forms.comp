#version 450
// What else may be done with cooperative matrices: tiles from workgroup memory with padded rows, arrays of
// matrices, functions, elements one by one, conversions, arithmetic, constants. Four subgroups a workgroup,
// each with two of the eight tiles of 16 x 16 that a workgroup makes.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma use_vulkan_memory_model
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kThreads = 128;
layout(constant_id = 2) const uint kSteps = 3;  // of 32 products each
layout(set = 0, binding = 0) readonly buffer A { f16vec4 a[]; };  // 32 rows
layout(set = 0, binding = 1) readonly buffer B { f16vec4 b[]; };  // 64 columns, one after the other
layout(set = 0, binding = 2) buffer D { float d[]; };             // 32 rows of 64
layout(set = 0, binding = 3) writeonly buffer W { int w[]; };
layout(set = 0, binding = 4) writeonly buffer L { int lengths[]; };

const uint kPitch = 40;  // elements of a row of 32 with padding
shared f16vec4 tile_a[32 * kPitch / 4];
shared f16vec4 tile_b[64 * kPitch / 4];
shared float staged[4 * 16 * 16];

#define SUM coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

SUM Scaled(SUM sum, float by) {
    for (int i = 0; i < sum.length(); ++i)
        sum[i] = sum[i] * by + 1.0;
    return sum;
}

void main() {
    SUM sums[2];
    for (uint i = 0; i < 2; ++i)
        sums[i] = SUM(0.0);
    uint row = gl_SubgroupID % 2 * 16;
    uint column = gl_SubgroupID / 2 * 32;
    for (uint step = 0; step < kSteps; ++step) {
        for (uint i = gl_LocalInvocationID.x; i < 32 * 8; i += kThreads)
            tile_a[i / 8 * (kPitch / 4) + i % 8] = a[i / 8 * kSteps * 8 + step * 8 + i % 8];
        for (uint i = gl_LocalInvocationID.x; i < 64 * 8; i += kThreads)
            tile_b[i / 8 * (kPitch / 4) + i % 8] = b[i / 8 * kSteps * 8 + step * 8 + i % 8];
        barrier();
        [[unroll]] for (uint k = 0; k < 32; k += 16) {
            coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> left;
            coopMatLoad(left, tile_a, (row * kPitch + k) / 4, kPitch / 4, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0; i < 2; ++i) {
                coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> right;
                coopMatLoad(right, tile_b, ((column + i * 16) * kPitch + k) / 4, kPitch / 4,
                            gl_CooperativeMatrixLayoutColumnMajor);
                sums[i] = coopMatMulAdd(left, right, sums[i]);
            }
        }
        barrier();
    }
    // 2 (2 x + 1) - x - 1 / 2 = 3 x + 1.5
    for (uint i = 0; i < 2; ++i) {
        SUM other = -sums[i] - SUM(0.5);
        sums[i] = Scaled(sums[i], 2.0) * 2.0 + other;
    }
    coopMatStore(sums[0], d, row * 64 + column, 64, gl_CooperativeMatrixLayoutRowMajor);
    // The second one through workgroup memory, as its transpose.
    coopMatStore(sums[1], staged, gl_SubgroupID * 256, 16, gl_CooperativeMatrixLayoutColumnMajor);
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    for (uint i = gl_SubgroupInvocationID; i < 256; i += gl_SubgroupSize)
        d[(row + i % 16) * 64 + column + 16 + i / 16] = staged[gl_SubgroupID * 256 + i];
    coopmat<int, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> whole =
        coopmat<int, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(sums[0]);
    coopMatStore(whole, w, gl_SubgroupID * 256, 16, gl_CooperativeMatrixLayoutRowMajor);
    lengths[gl_LocalInvocationID.x] = whole.length();
}
