// C = A * B for square row-major matrices, the classic way: a workgroup of 16 x 16 computes a tile of
// 64 x 64 from slices of depth 16 in shared memory, each invocation 4 x 4 values in registers.
// The matrix side must be a multiple of 64.
#version 450
const uint TILE = 64;
const uint DEPTH = 16;
const uint THREADS = 16;
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) readonly buffer A {
    float a[];
};
layout(set = 0, binding = 1) readonly buffer B {
    float b[];
};
layout(set = 0, binding = 2) writeonly buffer C {
    float c[];
};
layout(push_constant) uniform Parameters {
    uint side;
};

shared float a_slice[DEPTH][TILE];  // transposed, so that a column of A is contiguous
shared float b_slice[DEPTH][TILE];

void main() {
    uint thread = gl_LocalInvocationIndex;
    uint tx = gl_LocalInvocationID.x;
    uint ty = gl_LocalInvocationID.y;
    uint row0 = gl_WorkGroupID.y * TILE;
    uint column0 = gl_WorkGroupID.x * TILE;

    float sums[4][4];
    for (uint i = 0; i < 4; ++i)
        for (uint j = 0; j < 4; ++j)
            sums[i][j] = 0.0;

    for (uint k0 = 0; k0 < side; k0 += DEPTH) {
        for (uint load = 0; load < TILE * DEPTH; load += THREADS * THREADS) {
            uint index = load + thread;
            uint a_row = index / DEPTH;
            uint a_column = index % DEPTH;
            a_slice[a_column][a_row] = a[(row0 + a_row) * side + k0 + a_column];
            uint b_row = index / TILE;
            uint b_column = index % TILE;
            b_slice[b_row][b_column] = b[(k0 + b_row) * side + column0 + b_column];
        }
        barrier();
        for (uint k = 0; k < DEPTH; ++k) {
            float a_values[4];
            float b_values[4];
            for (uint i = 0; i < 4; ++i)
                a_values[i] = a_slice[k][ty + i * THREADS];
            for (uint j = 0; j < 4; ++j)
                b_values[j] = b_slice[k][tx + j * THREADS];
            for (uint i = 0; i < 4; ++i)
                for (uint j = 0; j < 4; ++j)
                    sums[i][j] += a_values[i] * b_values[j];
        }
        barrier();
    }
    for (uint i = 0; i < 4; ++i)
        for (uint j = 0; j < 4; ++j)
            c[(row0 + ty + i * THREADS) * side + column0 + tx + j * THREADS] = sums[i][j];
}
