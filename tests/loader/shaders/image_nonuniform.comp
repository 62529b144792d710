#version 460
#extension GL_EXT_nonuniform_qualifier : require
// Images, samplers and texel buffers chosen from arrays, invocation by invocation.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, r32ui) uniform uimage2D storage_images[3];
layout(set = 0, binding = 1) uniform texture2D images[];
layout(set = 0, binding = 2) uniform sampler samplers[2];
layout(set = 0, binding = 3) uniform samplerBuffer texels[2];
layout(set = 0, binding = 4, r32f) uniform imageBuffer storage_texels[2];
layout(set = 0, binding = 5) writeonly buffer Out { vec4 results[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    ivec2 at = ivec2(i % 8, i / 8);
    uvec4 old = imageLoad(storage_images[nonuniformEXT(i % 3)], at);
    imageStore(storage_images[nonuniformEXT(i % 3)], at, old + i);
    vec2 place = (vec2(at) + 0.25) / 8;
    results[3 * i] = textureLod(
        nonuniformEXT(sampler2D(images[nonuniformEXT(i * 5 % 3)], samplers[nonuniformEXT(i / 3 % 2)])),
        place, 0);
    results[3 * i + 1] = texelFetch(texels[nonuniformEXT(i % 2)], int(i));
    results[3 * i + 2] = imageLoad(storage_texels[nonuniformEXT(i / 2 % 2)], int(i));
    imageStore(storage_texels[nonuniformEXT(i / 2 % 2)], int(i), vec4(i));
}
