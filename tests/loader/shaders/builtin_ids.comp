#version 450
// Each invocation writes every built-in id that it sees to its own slot of the dispatch.
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
struct Ids { uvec4 global; uvec4 local; uvec4 group; uvec4 groups; };
layout(set = 0, binding = 0) buffer Out { Ids ids[]; };
void main() {
    uvec3 n = gl_NumWorkGroups;
    uint group = (gl_WorkGroupID.z * n.y + gl_WorkGroupID.y) * n.x + gl_WorkGroupID.x;
    uint size = gl_WorkGroupSize.x * gl_WorkGroupSize.y * gl_WorkGroupSize.z;
    // A second write to a slot would show in the last word.
    uint slot = group * size + gl_LocalInvocationIndex;
    ids[slot].global = uvec4(gl_GlobalInvocationID, gl_LocalInvocationIndex);
    ids[slot].local = uvec4(gl_LocalInvocationID, size);
    ids[slot].group = uvec4(gl_WorkGroupID, gl_WorkGroupSize.y);
    ids[slot].groups.xyz = n;
    atomicAdd(ids[slot].groups.w, 1u);
}
