#version 460
// Arrays of images, indexed by what push constants say; texels of one level of several.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0, r32ui) uniform uimage2D images[4];
layout(push_constant) uniform Push { uint from; uint to; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(images[to], at, imageLoad(images[from], at) + 1);
}
