#version 460
// Images of every dimension: each texel is made of its coordinates and what was there.
layout(local_size_x = 4, local_size_y = 4, local_size_z = 4) in;
layout(set = 0, binding = 0, r32ui) uniform uimage1D line;
layout(set = 0, binding = 1, r32ui) uniform uimage1DArray lines;
layout(set = 0, binding = 2, r32ui) uniform uimage2D plane;
layout(set = 0, binding = 3, r32ui) uniform uimage2DArray planes;
layout(set = 0, binding = 4, r32ui) uniform uimage3D space;
layout(set = 0, binding = 5, r32ui) uniform uimageCube cube;
layout(set = 0, binding = 6, r32ui) uniform uimageCubeArray cubes;
layout(set = 0, binding = 7) buffer Out { uint sizes[]; };
uvec4 Value(uvec4 old, ivec3 at) {
    return uvec4(old.x + uint(at.x + 100 * at.y + 10000 * at.z), 0, 0, 0);
}
void main() {
    ivec3 at = ivec3(gl_GlobalInvocationID);
    if (at.y == 0 && at.z == 0)
        imageStore(line, at.x, Value(imageLoad(line, at.x), at));
    if (at.z == 0) {
        imageStore(lines, at.xy, Value(imageLoad(lines, at.xy), at));
        imageStore(plane, at.xy, Value(imageLoad(plane, at.xy), at));
    }
    imageStore(planes, at, Value(imageLoad(planes, at), at));
    imageStore(space, at, Value(imageLoad(space, at), at));
    imageStore(cube, at, Value(imageLoad(cube, at), at));
    imageStore(cubes, at, Value(imageLoad(cubes, at), at));
    if (at == ivec3(0)) {
        sizes[0] = imageSize(line);
        sizes[1] = imageSize(lines).x;
        sizes[2] = imageSize(lines).y;
        sizes[3] = imageSize(plane).x;
        sizes[4] = imageSize(plane).y;
        sizes[5] = imageSize(planes).x;
        sizes[6] = imageSize(planes).y;
        sizes[7] = imageSize(planes).z;
        sizes[8] = imageSize(space).x;
        sizes[9] = imageSize(space).y;
        sizes[10] = imageSize(space).z;
        sizes[11] = imageSize(cube).x;
        sizes[12] = imageSize(cube).y;
        sizes[13] = imageSize(cubes).x;
        sizes[14] = imageSize(cubes).y;
        sizes[15] = imageSize(cubes).z;
    }
}
