// ggml's q4_0 to floats of type OUT: blocks of a 16-bit scale and 32 values of 4 bits, of which byte i holds the
// values i and i + 16. An invocation takes 8 bytes, and neighbours take neighbouring blocks, like ggml's own kernel.
// It reads before it writes: the two buffers might overlap for all that a compiler knows.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 256) in;
struct Block {
    float16_t scale;
    uint8_t nibbles[16];
};
layout(set = 0, binding = 0) readonly buffer Blocks {
    Block blocks[];
};
layout(set = 0, binding = 1) writeonly buffer Values {
    OUT values[];
};
layout(push_constant) uniform Parameters {
    uint count;  // blocks
};

void main() {
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint chunk = group * 4u + gl_LocalInvocationID.x / 64u;
    uint half_block = gl_LocalInvocationID.x % 64u / 32u;
    uint block = chunk * 32u + gl_LocalInvocationID.x % 32u;
    if (block >= count)
        return;
    float scale = float(blocks[block].scale);
    uint bytes[8];
    for (uint i = 0u; i < 8u; ++i)
        bytes[i] = uint(blocks[block].nibbles[half_block * 8u + i]);
    for (uint i = 0u; i < 8u; ++i) {
        uint byte = bytes[i];
        values[block * 32u + half_block * 8u + i] = OUT(scale * (float(byte & 15u) - 8.0));
        values[block * 32u + half_block * 8u + i + 16u] = OUT(scale * (float(byte >> 4) - 8.0));
    }
}
