#version 460
#extension GL_EXT_shader_image_load_formatted : require
// Texel buffers of any format of floats: texels are told, then halves of them are stored.
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) uniform samplerBuffer from;
layout(set = 0, binding = 1) uniform imageBuffer to;
layout(set = 0, binding = 2) buffer Out { vec4 texels[64]; uint sizes[2]; };
void main() {
    int i = int(gl_GlobalInvocationID.x);
    texels[i] = texelFetch(from, i);
    imageStore(to, i, imageLoad(to, i) * 0.5 + texels[i] * 0.25);
    if (i == 0) {
        sizes[0] = textureSize(from);
        sizes[1] = imageSize(to);
    }
}
