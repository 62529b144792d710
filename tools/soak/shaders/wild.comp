#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
// Writes to, or reads from, an address that the application made up, in the workgroup that it says.
layout(local_size_x = 32) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint w[]; };
layout(set = 0, binding = 0) buffer Out { uint out_words[]; };
layout(push_constant) uniform Push { uvec2 address; uint workgroup; uint write; };
void main() {
    uint i = gl_LocalInvocationID.x;
    if (gl_WorkGroupID.x == workgroup) {
        if (write != 0u)
            Words(address).w[i] = i;
        else
            out_words[i] = Words(address).w[i];
    }
}
