#version 460
// Places beyond 4 GiB of a buffer, with indices of 32 and of 64 bits. With MODE the module asks for
// 64-bit indexing itself, else its pipeline does.
#extension GL_EXT_shader_64bit_indexing : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#ifdef MODE
#pragma shader_64bit_indexing
#endif
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Large { uint large[]; };
layout(set = 0, binding = 0) buffer Vectors { uvec4 vectors[]; };
layout(set = 0, binding = 0) buffer Narrow { uint8_t narrow[]; };
layout(set = 0, binding = 1) buffer Result { uint result[]; };
layout(push_constant) uniform Push { uint base, width; uint words_low, words_high; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint64_t words = uint64_t(words_high) << 32 | words_low;
    // Runs of lanes, of four words, of rows; as the host left them.
    uint value = large[base + i];
    result[i] = value;
    result[256 + i] = large[base + 1024 + 4 * i] + large[base + 1024 + 4 * i + 1] + large[base + 1024 + 4 * i + 2];
    result[512 + i] = large[base + (i >> 3) * width + (i & 7)];
    result[768 + i] = vectors[(base >> 2) + i].z;
    // Any place of the buffer.
    int64_t far = int64_t(i % 11) * 150000000l + int64_t(i % 5);
    result[1024 + i] = large[far];
    result[1280 + i] = uint(narrow[far * 4l]);
    // Outside: behind the end, before the start, behind by so much that 32 bits would wrap.
    result[1536 + i] = large[words + i] + large[int(i) - 1000] + large[(uint64_t(1) << 60) + i];
    large[words + i] = 99;
    large[int64_t(i) - 4000l] = 99;
    // Stores and atomics.
    large[base + 4096 + i] = value * 3;
    narrow[int64_t(base) * 4l + 32768l + i] = uint8_t(i);
    result[1792 + i] = atomicAdd(large[base + 16384 + (i & 3)], 1);
    atomicAdd(large[base + 16388], i);
#ifdef MODE
    if (i == 0) {
        int64_t length = large.length64();
        result[2048] = uint(length);
        result[2049] = uint(length >> 32);
    }
#else
    if (i == 0)
        result[2048] = uint(large.length());
#endif
}
