#version 460
// Comparisons with depths, whose references are the positions' last components.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform sampler2DShadow plane;
layout(set = 0, binding = 1) uniform sampler2DArrayShadow planes;
layout(set = 0, binding = 2) uniform samplerCubeShadow cube;
layout(set = 0, binding = 3) readonly buffer In { vec4 positions[]; };
layout(set = 0, binding = 4) writeonly buffer Out { vec4 results[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    vec4 p = positions[i];
    results[4 * i] = vec4(textureProjLod(plane, vec4(p.xyw * 2, 2), 0));
    results[4 * i + 1] = vec4(textureGrad(planes, p, vec2(0), vec2(0)));
    results[4 * i + 2] = vec4(textureGrad(cube, p, vec3(0), vec3(0)));
    results[4 * i + 3] = textureGather(plane, p.xy, p.w);
}
