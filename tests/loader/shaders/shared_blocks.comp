#version 450
// Workgroup memory seen as words, bytes, shorts and a structure in the scalar layout at once.
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shared_memory_block : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint results[]; };
shared Words { uint words[256]; };
shared Bytes { uint8_t bytes[1024]; };
shared Shorts { layout(offset = 4) int16_t shorts[510]; };
struct Mixed { uint8_t tag; f16vec3 half_; float value; };  // 12 bytes
layout(scalar) shared Items { Mixed items[64]; };

void main() {
    uint i = gl_LocalInvocationIndex;
    for (uint k = 0u; k < 16u; ++k)
        bytes[i * 16u + k] = uint8_t(i * 3u + k * 17u);
    barrier();
    for (uint k = 0u; k < 4u; ++k)
        results[k * 64u + i] = words[i * 4u + k];
    results[256u + i] = uint(int(shorts[i * 7u]));
    barrier();
    items[i].tag = uint8_t(i);
    items[i].half_ = f16vec3(i, i + 0.5, -float(i));
    items[i].value = float(i) * 4.0;
    barrier();
    uint other = (i * 5u + 3u) & 63u;
    results[320u + i] = words[(other * 12u + 8u) / 4u];
    results[384u + i] = uint(bytes[other * 12u]) | uint(uint16_t(shorts[other * 6u - (other > 0u ? 1u : 0u)])) << 16;
    // One invocation's bytes of a word that others write too.
    barrier();
    bytes[i] = uint8_t(255u - i);
    barrier();
    results[448u + i] = words[i & 15u];
}
