// Prefix sums of the rows of a matrix, one workgroup a row: sums within four elements, within a
// subgroup, and over the subgroups' totals in shared memory.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer Matrix {
    uvec4 matrix[];
};
layout(set = 0, binding = 1) writeonly buffer Sums {
    uvec4 sums[];
};
layout(push_constant) uniform Parameters {
    uint columns;  // a multiple of 1,024
};

shared uint totals[128];  // by subgroup

void main() {
    uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    uint row = gl_WorkGroupID.x * (columns / 4);
    uint carry = 0;
    for (uint start = 0; start < columns / 4; start += 256) {
        uvec4 value = matrix[row + start + thread];
        value.y += value.x;
        value.z += value.y;
        value.w += value.z;
        uint before = subgroupExclusiveAdd(value.w);
        uint total = subgroupAdd(value.w);
        if (subgroupElect())
            totals[gl_SubgroupID] = total;
        barrier();
        uint below = 0;
        uint all = 0;
        for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize) {
            all += totals[i];
            below += i < gl_SubgroupID ? totals[i] : 0;
        }
        below = subgroupAdd(below);
        sums[row + start + thread] = value + (carry + below + before);
        carry += subgroupAdd(all);
        barrier();
    }
}
