#version 450
// For each workgroup's 256 words: their sum by a tree, and their inclusive prefix sums.
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer In { uint words[]; };
layout(set = 0, binding = 1) writeonly buffer Sums { uint sums[]; };
layout(set = 0, binding = 2) writeonly buffer Prefixes { uint prefixes[]; };
shared uint tree[256];
shared uint scan[2][256];
void main() {
    uint i = gl_LocalInvocationIndex;
    uint word = words[gl_GlobalInvocationID.x];
    tree[i] = word;
    barrier();
    for (uint half_size = 128u; half_size > 0u; half_size >>= 1) {
        if (i < half_size)
            tree[i] += tree[i + half_size];
        barrier();
    }
    if (i == 0u)
        sums[gl_WorkGroupID.x] = tree[0];
    uint from = 0u;
    scan[from][i] = word;
    barrier();
    for (uint step = 1u; step < 256u; step *= 2u) {
        uint other = i >= step ? scan[from][i - step] : 0u;
        scan[1u - from][i] = scan[from][i] + other;
        from = 1u - from;
        barrier();
    }
    prefixes[gl_GlobalInvocationID.x] = scan[from][i];
}
