#version 460
#extension GL_EXT_shader_image_load_formatted : require
// Every texel of an image of any format, and some that it does not have, is read, told, and written
// to another image. IMAGE and TEXEL are GLSL's types for one kind of component.
layout(local_size_x = 8, local_size_y = 4) in;
layout(set = 0, binding = 0) uniform IMAGE from;
layout(set = 0, binding = 1) writeonly uniform IMAGE to;
layout(set = 0, binding = 2) buffer Out { uvec4 texels[]; };
#if IS_FLOAT
#define BITS(v) floatBitsToUint(v)
#else
#define BITS(v) uvec4(v)
#endif
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    TEXEL texel = imageLoad(from, at);
    texels[at.y * 24 + at.x] = BITS(texel);
    imageStore(to, at, texel);
}
