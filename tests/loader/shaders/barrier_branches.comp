#version 450
// A switch and a branch that differ between invocations, around a barrier that either all of a workgroup
// reach or none.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Outer { uint outer_way[]; };
layout(set = 0, binding = 1) readonly buffer Inner { uint inner_way[]; };
layout(set = 0, binding = 2) writeonly buffer Out { uint result[]; };
shared uint words[64];
uint Turn(uint way, uint i, uint round) {
    uint l = gl_LocalInvocationIndex;
    if (inner_way[i] != 0u || inner_way[gl_WorkGroupID.x * 64u + 63u - l] != 0u) {
        barrier();
        words[l] = inner_way[i];
        barrier();
        return way * words[63u - l] + round;
    }
    return 2000u * way + i;
}
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint sum = 0u;
    for (uint round = 0u; round < 3u; ++round) {
        uint value;
        switch (outer_way[i]) {
        case 0u:
            value = 1000u + i;
            break;
        case 1u:
            value = Turn(1u, i, round);
            break;
        default:
            value = Turn(outer_way[i], i, round);
            break;
        }
        sum = 3u * sum + value;
    }
    result[i] = sum;
}
