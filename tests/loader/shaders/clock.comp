#version 450
#extension GL_ARB_gpu_shader_int64 : require
#extension GL_ARB_shader_clock : require
#extension GL_EXT_shader_realtime_clock : require
// Stores for each invocation the clock before and after some work, of the subgroup and of the device, in both forms.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Out { uint64_t times[]; };
layout(set = 0, binding = 1) buffer Work { uint words[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint64_t first = clockRealtimeEXT();
    uint64_t second = clockARB();
    uint word = words[i];
    for (uint k = 0; k < 100u + i % 7u; ++k)
        word = word * 1664525u + 1013904223u;
    words[i] = word;
    uvec2 third = clock2x32ARB();
    uvec2 fourth = clockRealtime2x32EXT();
    times[i * 4] = first;
    times[i * 4 + 1] = second;
    times[i * 4 + 2] = packUint2x32(third);
    times[i * 4 + 3] = packUint2x32(fourth);
}
