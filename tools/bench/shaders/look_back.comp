// Prefix sums of one long array in one pass: each workgroup publishes the sum of its part, then looks
// back over its predecessors until it meets one that knows everything before it (D. Merrill and
// M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back). Parts are numbered by a
// counter, so that those that a workgroup waits for have started before. The counter is never reset:
// a round of it after the other, flags carry the round's number.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer Source {
    uvec4 source[];
};
layout(set = 0, binding = 1) writeonly buffer Sums {
    uvec4 sums[];
};
layout(set = 0, binding = 2) coherent volatile buffer Counter {
    uint counter;
};
// By part: 2 * round + 1 when the part's sum is there, one more when that of all up to it is.
layout(set = 0, binding = 3) coherent volatile buffer Flags {
    uint flags[];
};
layout(set = 0, binding = 4) coherent volatile buffer PartSums {
    uint part_sums[];
};
layout(set = 0, binding = 5) coherent volatile buffer Prefixes {
    uint prefixes[];
};
layout(push_constant) uniform Parameters {
    uint parts;
};

const uint CHUNKS = 4;
shared uint ticket;
shared uint totals[CHUNKS * 128];  // by chunk and subgroup
shared uint everything_before;

uint sum_before(uint part, uint round) {
    uint sum = 0;
    // The lanes look at as many predecessors at once, the nearest first.
    for (uint end = part; end != 0; end -= min(end, gl_SubgroupSize)) {
        bool exists = gl_SubgroupInvocationID < end;
        uint at = exists ? end - 1 - gl_SubgroupInvocationID : 0;
        uint first;
        bool complete;
        for (;;) {
            uint flag = exists ? flags[at] : 2 * round + 2;
            complete = !exists || flag == 2 * round + 2;
            uvec4 ends = subgroupBallot(complete);
            first = subgroupAny(complete) ? subgroupBallotFindLSB(ends) : gl_SubgroupSize;
            bool missing = gl_SubgroupInvocationID <= first && flag <= 2 * round;
            if (!subgroupAny(missing))
                break;
        }
        memoryBarrierBuffer();
        uint value = 0;
        if (exists && gl_SubgroupInvocationID <= first)
            value = complete ? prefixes[at] : part_sums[at];
        sum += subgroupAdd(value);
        if (first < gl_SubgroupSize)
            break;
    }
    return sum;
}

void main() {
    uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    if (thread == 0)
        ticket = atomicAdd(counter, 1);
    barrier();
    uint part = ticket % parts;
    uint round = ticket / parts;
    uint start = part * (CHUNKS * 256) + thread;
    uvec4 value[CHUNKS];
    uint before[CHUNKS];
    [[unroll]] for (uint c = 0; c < CHUNKS; ++c) {
        value[c] = source[start + c * 256];
        value[c].y += value[c].x;
        value[c].z += value[c].y;
        value[c].w += value[c].z;
        before[c] = subgroupExclusiveAdd(value[c].w);
        uint total = subgroupAdd(value[c].w);
        if (subgroupElect())
            totals[c * gl_NumSubgroups + gl_SubgroupID] = total;
    }
    barrier();
    if (gl_SubgroupID == 0) {
        uint sum = 0;
        for (uint i = gl_SubgroupInvocationID; i < CHUNKS * gl_NumSubgroups; i += gl_SubgroupSize)
            sum += totals[i];
        sum = subgroupAdd(sum);
        if (subgroupElect()) {
            part_sums[part] = sum;
            memoryBarrierBuffer();
            flags[part] = 2 * round + 1;
        }
        uint earlier = sum_before(part, round);
        if (subgroupElect()) {
            prefixes[part] = earlier + sum;
            memoryBarrierBuffer();
            flags[part] = 2 * round + 2;
            everything_before = earlier;
        }
    }
    barrier();
    uint carry = everything_before;
    [[unroll]] for (uint c = 0; c < CHUNKS; ++c) {
        uint all = 0;
        uint below = 0;
        for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize) {
            uint total = totals[c * gl_NumSubgroups + i];
            all += total;
            below += i < gl_SubgroupID ? total : 0;
        }
        sums[start + c * 256] = value[c] + (carry + subgroupAdd(below) + before[c]);
        carry += subgroupAdd(all);
    }
}
