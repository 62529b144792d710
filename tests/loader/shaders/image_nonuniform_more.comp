#version 460
#extension GL_EXT_nonuniform_qualifier : require
// As image_nonuniform.comp: combined image samplers, gathers, queries and atomics.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform sampler2D images[3];
layout(set = 0, binding = 1, r32ui) uniform uimage2D counters[3];
layout(set = 0, binding = 2, r32ui) uniform uimageBuffer texels[2];
layout(set = 0, binding = 3) writeonly buffer Out { vec4 results[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint which = i * 5 % 3;
    vec2 place = (vec2(i % 8, i / 8) + 0.25) / 8;
    results[4 * i] = textureLod(images[nonuniformEXT(which)], place, 0);
    results[4 * i + 1] = textureGather(images[nonuniformEXT(which)], place, 1);
    results[4 * i + 2] = vec4(textureSize(images[nonuniformEXT(which)], 0),
                              imageSize(counters[nonuniformEXT(i % 3)]));
    results[4 * i + 3] = vec4(textureQueryLevels(images[nonuniformEXT(which)]),
                              imageSize(texels[nonuniformEXT(i % 2)]), 0, 0);
    imageAtomicAdd(counters[nonuniformEXT(i % 3)], ivec2(i / 3 % 8, 0), i);
    imageAtomicMax(texels[nonuniformEXT(i % 2)], int(i / 2 % 4), i);
}
