// A workgroup that does nothing, but for the very last one, which leaves a mark: the cost measured is
// that of starting workgroups, and no driver can skip them.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Mark {
    uint mark;
};
layout(push_constant) uniform Parameters {
    uvec2 last_invocation;
};

void main() {
    if (gl_GlobalInvocationID.xy == last_invocation)
        mark = last_invocation.x + last_invocation.y;
}
