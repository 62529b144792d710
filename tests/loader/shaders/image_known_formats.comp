#version 460
// Formats that the shader names: what is stored is what a copy between two images of them stores.
layout(local_size_x = 16) in;
layout(set = 0, binding = 0, r32f) uniform image2D r32;
layout(set = 0, binding = 1, rgba32f) uniform image2D rgba32;
layout(set = 0, binding = 2, rgba8) uniform image2D rgba8;
layout(set = 0, binding = 3, rgba16f) uniform image2D rgba16;
layout(set = 0, binding = 4, r32f) writeonly uniform image2D r32_out;
layout(set = 0, binding = 5, rgba32f) writeonly uniform image2D rgba32_out;
layout(set = 0, binding = 6, rgba8) writeonly uniform image2D rgba8_out;
layout(set = 0, binding = 7, rgba16f) writeonly uniform image2D rgba16_out;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    ivec2 mirrored = imageSize(r32) - 1 - at;
    imageStore(r32_out, at, imageLoad(r32, mirrored));
    imageStore(rgba32_out, at, imageLoad(rgba32, mirrored).wzyx);
    imageStore(rgba8_out, at, imageLoad(rgba8, mirrored).wzyx);
    imageStore(rgba16_out, at, imageLoad(rgba16, mirrored).wzyx);
}
