#version 450
// Counts workgroups and records the largest id, so that a grid's shape can be told.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Out { uint groups; uint max_x; uint max_y; uint max_z; };
void main() {
    atomicAdd(groups, 1);
    atomicMax(max_x, gl_WorkGroupID.x);
    atomicMax(max_y, gl_WorkGroupID.y);
    atomicMax(max_z, gl_WorkGroupID.z);
}
