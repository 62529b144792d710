#version 450
// 8- and 16-bit members of storage buffers, uniform buffers and push constants, in runs, strided, at
// irregular places and at the edges.
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kCount = 300;

// A block of ggml's q4_0: 18 bytes.
struct Block { float16_t scale; uint8_t nibbles[16]; };
layout(set = 0, binding = 0, scalar) readonly buffer Blocks { Block blocks[]; };
layout(set = 0, binding = 1, scalar) readonly buffer Halves { f16vec3 triples[]; };
layout(set = 0, binding = 2, scalar) readonly buffer Bytes { uint8_t bytes[]; };
layout(set = 0, binding = 3, scalar) uniform Uniform {
    int8_t u_bytes[7];
    uint8_t u_last;
    f16vec3 u_half;
    i16vec2 u_shorts[3];
    u8vec3 u_triple;
} u;
layout(set = 0, binding = 4, scalar) writeonly buffer Floats { float floats[]; };
layout(set = 0, binding = 5, scalar) writeonly buffer HalvesOut { f16vec3 out_triples[]; };
layout(set = 0, binding = 6, scalar) writeonly buffer BytesOut { uint8_t out_bytes[]; };
layout(set = 0, binding = 7, scalar) writeonly buffer ShortsOut { int16_t out_shorts[]; };
layout(push_constant, scalar) uniform Push {
    uint8_t first;
    i16vec3 shorts;
    float16_t half_;
    i8vec4 quad;
    uint8_t tail[3];
} push;

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint group = gl_WorkGroupID.x;
    // Half a block an invocation, low nibbles then high ones.
    uint block = i / 2u;
    uint half_block = i % 2u;
    if (i < kCount) {
        for (uint k = 0u; k < 16u; ++k) {
            uint byte = uint(blocks[block].nibbles[k]);
            uint nibble = half_block == 0u ? byte & 15u : byte >> 4;
            floats[i * 16u + k] = float(blocks[block].scale) * (float(nibble) - 8.0);
        }
        // Neighbours, backwards.
        out_triples[i] = triples[kCount - 1u - i].zxy + push.half_;
        // Irregular: where the bytes say.
        uint from = uint(bytes[i]) * 7u % kCount;
        uint to = (i * 37u + 11u) % 300u;
        out_bytes[to] = bytes[from] + uint8_t(1);
        out_shorts[to * 3u + 1u] = int16_t(int(int8_t(bytes[i])) * 3);
    }
    if (i < 7u)
        floats[kCount * 16u + i] = float(u.u_bytes[i]);
    if (i < 6u)
        floats[kCount * 16u + 7u + i] = float(u.u_shorts[i / 2u][i % 2u]);
    if (i < 3u) {
        floats[kCount * 16u + 13u + i] = float(u.u_half[i]);
        floats[kCount * 16u + 16u + i] = float(u.u_triple[i]);
        floats[kCount * 16u + 19u + i] = float(push.shorts[i]);
        floats[kCount * 16u + 22u + i] = float(push.tail[i]);
    }
    if (i < 4u)
        floats[kCount * 16u + 25u + i] = float(push.quad[i]);
    if (i == 0u) {
        floats[kCount * 16u + 29u] = float(u.u_last);
        floats[kCount * 16u + 30u] = float(push.first);
    }
}
