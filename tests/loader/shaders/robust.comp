#version 450
// Reads and writes far outside the bound ranges.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uint in_words[]; };
layout(set = 0, binding = 1) buffer Out { uint out_words[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint sum = in_words[i] + in_words[i * 1000u] + in_words[i ^ 0x3fffffffu];
    out_words[i] = sum;
    out_words[i + 100000u] = 1u;
    out_words[i * 65536u + 64u] = 2u;
}
