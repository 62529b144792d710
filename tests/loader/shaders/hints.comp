#version 450
// What is expected or assumed changes no result, also where the expectation is wrong.
#extension GL_EXT_expect_assume : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Out { uint words[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    assumeEXT(i < 4096u);
    uint r = expectEXT(i % 3u, 0u);
    if (expectEXT(r == 1u, false))
        r = i * 7u;
    uvec2 pair = expectEXT(uvec2(i, r), uvec2(1u, 2u));
    words[i] = pair.x + 1000u * pair.y;
}
