// D = A * B in the way inference engines write it: A quantised in blocks of 32 four-bit values, tiles and patches sized by
// specialisation constants, every edge checked, batches, and a split of the inner dimension. What matters here is how long
// a compiler takes for it.
#version 450
#extension GL_EXT_control_flow_attributes : require

layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint BM = 64;      // a workgroup's tile of D
layout(constant_id = 2) const uint BN = 64;
layout(constant_id = 3) const uint WM = 32;      // a group of WARP invocations' part of it
layout(constant_id = 4) const uint WN = 32;
layout(constant_id = 5) const uint PATCHES_M = 2;  // of one invocation
layout(constant_id = 6) const uint TM = 4;       // a patch
layout(constant_id = 7) const uint TN = 4;
layout(constant_id = 8) const uint WARP = 32;
const uint BK = 32;  // one block of A
const uint BLOCK_WORDS = 5;  // the scale, and 8 values a word

layout(local_size_x = 128, local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };      // row after row of blocks
layout(set = 0, binding = 1) readonly buffer B { vec4 b[]; };      // column after column
layout(set = 0, binding = 2) writeonly buffer D { float d[]; };    // column after column
layout(push_constant) uniform Parameters {
    uint m;
    uint n;
    uint k;
    uint k_split;
    uint a_stride;  // words
    uint b_stride;  // vec4s
    uint d_stride;  // floats
    uint a_batch;
    uint b_batch;
    uint d_batch;
};

const uint PATCHES_N = WM * WN / (WARP * TM * TN * PATCHES_M);
const uint PATCH_M = WM / PATCHES_M;
const uint PATCH_N = WN / PATCHES_N;
const uint PITCH = BK + 1;
shared float a_tile[BM * PITCH];
shared float b_tile[BN * PITCH];

void LoadA(uint thread, uint row0, uint block, uint base) {
    [[unroll]] for (uint first = 0; first < BM * BK / 8; first += THREADS) {
        uint item = first + thread;
        uint row = item / (BK / 8);
        uint word = item % (BK / 8);
        uint at = base + (row0 + row) * a_stride + block * BLOCK_WORDS;
        float scale = 0.0;
        uint packed = 0;
        if (row0 + row < m) {
            scale = uintBitsToFloat(a[at]);
            packed = a[at + 1 + word];
        }
        [[unroll]] for (uint i = 0; i < 8; ++i)
            a_tile[row * PITCH + word * 8 + i] = scale * (float((packed >> (4 * i)) & 15u) - 8.0);
    }
}

void LoadB(uint thread, uint column0, uint block, uint base) {
    [[unroll]] for (uint first = 0; first < BN * BK / 4; first += THREADS) {
        uint item = first + thread;
        uint column = item / (BK / 4);
        uint quad = item % (BK / 4);
        vec4 values = vec4(0.0);
        if (column0 + column < n && block * BK + quad * 4 < k)
            values = b[base + (column0 + column) * b_stride + block * (BK / 4) + quad];
        b_tile[column * PITCH + quad * 4 + 0] = values.x;
        b_tile[column * PITCH + quad * 4 + 1] = values.y;
        b_tile[column * PITCH + quad * 4 + 2] = values.z;
        b_tile[column * PITCH + quad * 4 + 3] = values.w;
    }
}

void main() {
    uint thread = gl_LocalInvocationIndex;
    uint tiles_m = (m + BM - 1) / BM;
    uint row0 = gl_WorkGroupID.x % tiles_m * BM;
    uint split = gl_WorkGroupID.x / tiles_m;
    uint column0 = gl_WorkGroupID.y * BN;
    uint batch = gl_WorkGroupID.z;

    uint warp = thread / WARP;
    uint lane = thread % WARP;
    uint warp_row = warp % (BM / WM) * WM;
    uint warp_column = warp / (BM / WM) * WN;
    uint lane_row = lane % (PATCH_M / TM) * TM;
    uint lane_column = lane / (PATCH_M / TM) * TN;

    float sums[PATCHES_M * TM * PATCHES_N * TN];
    [[unroll]] for (uint i = 0; i < PATCHES_M * TM * PATCHES_N * TN; ++i)
        sums[i] = 0.0;

    uint first_block = split * k_split / BK;
    uint last_block = min(k, (split + 1) * k_split) / BK;
    for (uint block = first_block; block < last_block; ++block) {
        LoadA(thread, row0, block, batch * a_batch);
        LoadB(thread, column0, block, batch * b_batch);
        barrier();
        [[unroll]] for (uint inner = 0; inner < BK; ++inner) {
            float a_cache[PATCHES_M * TM];
            [[unroll]] for (uint p = 0; p < PATCHES_M; ++p)
                [[unroll]] for (uint i = 0; i < TM; ++i)
                    a_cache[p * TM + i] = a_tile[(warp_row + p * PATCH_M + lane_row + i) * PITCH + inner];
            [[unroll]] for (uint q = 0; q < PATCHES_N; ++q) {
                [[unroll]] for (uint j = 0; j < TN; ++j) {
                    float value = b_tile[(warp_column + q * PATCH_N + lane_column + j) * PITCH + inner];
                    [[unroll]] for (uint p = 0; p < PATCHES_M; ++p)
                        [[unroll]] for (uint i = 0; i < TM; ++i) {
                            uint index = ((q * TN + j) * PATCHES_M + p) * TM + i;
                            sums[index] = fma(a_cache[p * TM + i], value, sums[index]);
                        }
                }
            }
        }
        barrier();
    }

    uint base = batch * d_batch + split * d_stride * n;
    [[unroll]] for (uint q = 0; q < PATCHES_N; ++q)
        [[unroll]] for (uint j = 0; j < TN; ++j) {
            uint column = column0 + warp_column + q * PATCH_N + lane_column + j;
            [[unroll]] for (uint p = 0; p < PATCHES_M; ++p)
                [[unroll]] for (uint i = 0; i < TM; ++i) {
                    uint row = row0 + warp_row + p * PATCH_M + lane_row + i;
                    if (row < m && column < n)
                        d[base + column * d_stride + row] = sums[((q * TN + j) * PATCHES_M + p) * TM + i];
                }
        }
}
