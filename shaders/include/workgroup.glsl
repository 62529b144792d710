// The shape of a workgroup and the linear index of an invocation, for every kernel of the graph compiler.
//
// Specialisation constants 0 and 1 are the workgroup's width and height. A kernel that maps invocations to
// a linear range of items uses a grid whose x and z count workgroups (Vulkan guarantees only 65,535 in one
// direction) and leaves y to the kernel.
#extension GL_GOOGLE_include_directive : require

layout(local_size_x_id = 0, local_size_y_id = 1) in;

uint LinearIndex() {
    return (gl_WorkGroupID.z * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x +
           gl_LocalInvocationID.x;
}
