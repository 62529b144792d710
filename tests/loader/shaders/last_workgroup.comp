#version 460
// The Vulkan memory model across workgroups: each leaves a partial sum in plain memory and counts
// itself at device scope; the one that comes last sees all the others' sums.
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uint words[]; };
layout(set = 0, binding = 1) devicecoherent buffer Partial { uint partial[]; };
layout(set = 0, binding = 2) devicecoherent buffer Counter { uint arrived; };
layout(set = 0, binding = 3) buffer Out { uint total; uint times; };
shared uint sums[64];
shared bool is_last;
void Wait() {
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsShared,
                   gl_SemanticsAcquireRelease);
}
void main() {
    uint li = gl_LocalInvocationIndex;
    sums[li] = words[gl_GlobalInvocationID.x];
    Wait();
    if (li == 0u) {
        uint sum = 0u;
        for (uint k = 0u; k < 64u; ++k)
            sum += sums[k];
        partial[gl_WorkGroupID.x] = sum;
        uint before = atomicAdd(arrived, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                                gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable |
                                    gl_SemanticsMakeVisible);
        is_last = before + 1u == gl_NumWorkGroups.x;
    }
    Wait();
    if (!is_last)
        return;
    uint sum = 0u;
    for (uint k = li; k < gl_NumWorkGroups.x; k += 64u)
        sum += partial[k];
    sums[li] = sum;
    Wait();
    if (li == 0u) {
        for (uint k = 1u; k < 64u; ++k)
            sum += sums[k];
        total = sum;
        times += 1u;
    }
}
