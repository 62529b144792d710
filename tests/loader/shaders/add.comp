#version 450
// out[i] = in[i] + addend for the grid's invocations; both the specialisation constant and the push constant
// take part.
layout(local_size_x = 32) in;
layout(constant_id = 7) const uint kScale = 1;
layout(set = 0, binding = 0) readonly buffer In { uint in_words[]; };
layout(set = 0, binding = 1) buffer Out { uint out_words[]; };
layout(push_constant) uniform Push { uint addend; uint count; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count)
        out_words[i] = in_words[i] * kScale + addend;
}
