#version 460
// Samples of a plane and of a cube at places that a buffer holds.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform sampler2D plane;
layout(set = 0, binding = 1) uniform samplerCube cube;
layout(set = 0, binding = 2) readonly buffer In { vec4 places[]; };
layout(set = 0, binding = 3) writeonly buffer Out { vec4 texels[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    texels[2 * i] = textureLod(plane, places[i].xy, 0);
    texels[2 * i + 1] = textureLod(cube, places[i].xyz, 0);
}
