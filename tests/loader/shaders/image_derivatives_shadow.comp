#version 460
#extension GL_KHR_compute_shader_derivatives : require
// Comparisons with depths, filtered as the positions of a quad's invocations ask for.
layout(local_size_x = 8, local_size_y = 4) in;
layout(derivative_group_quadsKHR) in;
layout(set = 0, binding = 0) uniform sampler2DShadow plane;
layout(set = 0, binding = 1) readonly buffer In { vec4 positions[]; };
layout(set = 0, binding = 2) writeonly buffer Out { vec4 results[]; };
void main() {
    uint i = gl_WorkGroupID.x * 32 + gl_LocalInvocationIndex;
    vec4 p = positions[i];
    results[i] = vec4(texture(plane, p.xyz), texture(plane, p.xyz, 0.5),
                      textureProj(plane, vec4(p.xyz * p.w, p.w)), 0);
}
