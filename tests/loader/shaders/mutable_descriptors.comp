#version 460
// One binding of mutable descriptors, each used as what it is: `kinds` says as which of them.
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Words { uint words[]; } blocks[8];
layout(set = 0, binding = 0) uniform Four { uvec4 four; } uniforms[8];
layout(set = 0, binding = 0, r32ui) uniform uimage2D images[8];
layout(set = 0, binding = 0) uniform texture2D textures[8];
layout(set = 0, binding = 0) uniform sampler samplers[8];
layout(set = 0, binding = 0) uniform sampler2D combined[8];
layout(set = 0, binding = 0) uniform usamplerBuffer texels[8];
layout(set = 0, binding = 1) buffer Out { uint results[]; };
layout(push_constant) uniform Push { uint kinds[8]; };
void main() {
    uint i = gl_WorkGroupID.x;
    switch (kinds[i]) {
    case 1:
        results[i] = blocks[i].words[1];
        blocks[i].words[1] += 1000;
        break;
    case 2:
        results[i] = uniforms[i].four.y;
        break;
    case 3:
        results[i] = imageLoad(images[i], ivec2(1, 0)).x;
        imageStore(images[i], ivec2(1, 0), uvec4(results[i] + 1000));
        break;
    case 4:
        results[i] = uint(textureLod(sampler2D(textures[i], samplers[0]), vec2(0.75, 0.5), 0).x);
        break;
    case 5:
        results[i] = uint(textureLod(combined[i], vec2(0.75, 0.5), 0).x);
        break;
    case 6:
        results[i] = texelFetch(texels[i], 1).x;
        break;
    }
}
