#version 460
// Images and samplers apart, both in arrays that push constants index, with immutable samplers beside.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform texture2D images[2];
layout(set = 0, binding = 1) uniform sampler samplers[2];
layout(set = 0, binding = 2) uniform sampler2D combined;
layout(set = 0, binding = 3) readonly buffer In { vec2 positions[]; };
layout(set = 0, binding = 4) writeonly buffer Out { vec4 results[]; };
layout(push_constant) uniform Push { uint image_number; uint sampler_number; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    results[2 * i] = textureLod(sampler2D(images[image_number], samplers[sampler_number]),
                                positions[i], 0);
    results[2 * i + 1] = textureProjLod(combined, vec3(positions[i] * 4, 4), 0);
}
