#version 450
// Each texel tells its place, read back through the buffer by the next round.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) buffer Out { uint out_words[]; };
layout(set = 0, binding = 1, r32ui) uniform uimage2D image;
layout(push_constant) uniform Push { uint addend; };
void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    uint index = at.y * gl_NumWorkGroups.x * 8u + at.x;
    uint value = imageLoad(image, ivec2(at)).x + index + addend;
    imageStore(image, ivec2(at), uvec4(value));
    out_words[index] = value;
}
