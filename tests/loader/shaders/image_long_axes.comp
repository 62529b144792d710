#version 460
// Three-dimensional images as long as an image may be in one dimension: each texel is made of its
// coordinates and what was there.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, r32ui) uniform uimage3D wide;
layout(set = 0, binding = 1, r32ui) uniform uimage3D high;
layout(set = 0, binding = 2, r32ui) uniform uimage3D deep;
uvec4 Value(uvec4 old, ivec3 at) {
    return uvec4(old.x + uint(at.x + 3 * at.y + 5 * at.z), 0, 0, 0);
}
void main() {
    int i = int(gl_GlobalInvocationID.x);
    int j = int(gl_GlobalInvocationID.y);
    ivec3 at = ivec3(i, j, 0);
    imageStore(wide, at, Value(imageLoad(wide, at), at));
    at = ivec3(j, i, 0);
    imageStore(high, at, Value(imageLoad(high, at), at));
    at = ivec3(0, j, i);
    imageStore(deep, at, Value(imageLoad(deep, at), at));
}
