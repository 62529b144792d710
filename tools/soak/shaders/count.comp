#version 450
// out[i] += addend * (i + 1), once for each invocation; the specialisation constant makes kernels differ.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kStep = 1;
layout(set = 0, binding = 0) buffer Out { uint out_words[]; };
layout(push_constant) uniform Push { uint addend; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    out_words[i] += addend * (i + kStep);
}
