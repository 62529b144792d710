#version 460
// Texels of a uniform texel buffer of any format, and some that it does not have, are told. BUFFER
// is GLSL's type for one kind of component.
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) uniform BUFFER from;
layout(set = 0, binding = 1) buffer Out { uvec4 texels[]; };
#if IS_FLOAT
#define BITS(v) floatBitsToUint(v)
#else
#define BITS(v) uvec4(v)
#endif
void main() {
    int i = int(gl_GlobalInvocationID.x);
    texels[i] = BITS(texelFetch(from, i));
}
