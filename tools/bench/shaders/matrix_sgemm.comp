// C = A * B for square matrices of f32, with the matrix unit: a subgroup of 32 makes a tile of 32 x 64
// sums from A row by row and from B in panels of 16 columns, whose rows follow each other, so that
// nothing is copied. Four steps an iteration, because sums are loaded and stored once for these.
// The matrix side must be a multiple of 64.
#version 460
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_control_flow_attributes : require
#pragma use_vulkan_memory_model
const uint SIZE = 16;  // of a matrix
const uint ROWS = 2;
const uint COLUMNS = 4;
const uint STEPS = 4;
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) readonly buffer A {
    float a[];
};
layout(set = 0, binding = 1) readonly buffer B {
    float b[];  // element (k, column) is at (column / 16 * side + k) * 16 + column % 16
};
layout(set = 0, binding = 2) writeonly buffer C {
    float c[];
};
layout(push_constant) uniform Parameters {
    uint side;
};

void main() {
    uint row = gl_WorkGroupID.y * ROWS * SIZE;
    uint column = gl_WorkGroupID.x * COLUMNS * SIZE;
    coopmat<float, gl_ScopeSubgroup, SIZE, SIZE, gl_MatrixUseAccumulator> sums[ROWS * COLUMNS];
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; ++i)
        sums[i] = coopmat<float, gl_ScopeSubgroup, SIZE, SIZE, gl_MatrixUseAccumulator>(0.0);
    for (uint k = 0; k < side; k += STEPS * SIZE) {
        [[unroll]] for (uint step = 0; step < STEPS; ++step) {
            coopmat<float, gl_ScopeSubgroup, SIZE, SIZE, gl_MatrixUseA> left[ROWS];
            coopmat<float, gl_ScopeSubgroup, SIZE, SIZE, gl_MatrixUseB> right[COLUMNS];
            [[unroll]] for (uint i = 0; i < ROWS; ++i)
                coopMatLoad(left[i], a, (row + i * SIZE) * side + k + step * SIZE, side,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < COLUMNS; ++j)
                coopMatLoad(right[j], b, (column + j * SIZE) * side + (k + step * SIZE) * SIZE, SIZE,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint i = 0; i < ROWS; ++i)
                [[unroll]] for (uint j = 0; j < COLUMNS; ++j)
                    sums[i * COLUMNS + j] = coopMatMulAdd(left[i], right[j], sums[i * COLUMNS + j]);
        }
    }
    [[unroll]] for (uint i = 0; i < ROWS; ++i)
        [[unroll]] for (uint j = 0; j < COLUMNS; ++j)
            coopMatStore(sums[i * COLUMNS + j], c, (row + i * SIZE) * side + column + j * SIZE, side,
                         gl_CooperativeMatrixLayoutRowMajor);
}
