#version 450
// Never ends: in registers alone, in memory, or waiting at a barrier for the next turn. Other kinds end
// at once, for grids that are endless themselves.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) volatile buffer Out { uint out_words[]; };
layout(push_constant) uniform Push { uint kind; uint never; };
shared uint turns;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (kind > 2u) {
        return;
    }
    if (kind == 0u) {
        uint x = i | 1u;
        while (x != never)  // x is odd, and `never` is 0, which the compiler does not know
            x = x * 1664525u + 1013904222u | 1u;
        out_words[i] = x;
    } else if (kind == 1u) {
        while (out_words[0] == 0u) {
        }
    } else {
        turns = 1u;
        while (turns != 0u) {
            barrier();
            atomicMax(turns, gl_LocalInvocationIndex + 1u);
            barrier();
        }
    }
}
