#version 460
// Messages from some invocations, of every kind of value.
#extension GL_EXT_debug_printf : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Out { uint words[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    vec3 place = vec3(i, 0.5, -1);
    if (i % 3 == 0) {
        debugPrintfEXT("%u: %1.2v3f", i, place);
    } else if (i % 3 == 1) {
        for (int k = 0; k < int(i % 4); ++k)
            debugPrintfEXT("[%u] step %d of %v2u, 100%%", i, -k, uvec2(i, words[i]));
    }
    if (i == 7)
        debugPrintfEXT("once");
    words[i] += 1;
}
