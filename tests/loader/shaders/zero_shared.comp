#version 450
// Workgroup memory that begins as zero, whatever the workgroup before left there.
#extension GL_EXT_null_initializer : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Out { uint results[]; };
struct Part { uint count; vec3 place; };
shared Part parts[100] = {};
shared uint total = {};
shared uint scratch[512];

void main() {
    uint i = gl_LocalInvocationIndex;
    uint wrong = 0u;
    for (uint k = i; k < 100u; k += 64u)
        wrong += uint(parts[k].count != 0u || parts[k].place != vec3(0));
    atomicAdd(total, wrong + 1u);
    barrier();
    results[gl_WorkGroupID.x * 64u + i] = total + wrong * 1000u;
    barrier();
    for (uint k = i; k < 100u; k += 64u) {
        parts[k].count = k + 1u;
        parts[k].place = vec3(k + 1u);
    }
    for (uint k = 0u; k < 8u; ++k)
        scratch[i * 8u + k] = 0xffffffffu;
}
