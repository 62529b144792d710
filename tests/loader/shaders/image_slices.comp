#version 460
// A part of the slices of a 3D image, one of them as a plane, and the same view through a sampler.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, r32ui) uniform uimage3D slices;
layout(set = 0, binding = 1, r32ui) uniform uimage2D plane;
layout(set = 0, binding = 2) uniform usampler2D sampled;
layout(set = 0, binding = 4) uniform usampler3D whole;
layout(set = 0, binding = 3) writeonly buffer Out { uint words[]; };
void main() {
    ivec3 size = imageSize(slices);
    words[0] = size.x;
    words[1] = size.y;
    words[2] = size.z;
    words[3] = imageLoad(plane, ivec2(2, 1)).x;
    words[4] = texelFetch(sampled, ivec2(1, 3), 0).x;
    for (int z = 0; z < size.z; ++z)
        words[5 + z] = imageLoad(slices, ivec3(3, 2, z)).x;
    words[8] = textureSize(whole, 0).z;
    words[9] = texelFetch(whole, ivec3(3, 2, 1), 0).x;
    imageStore(slices, ivec3(0, 0, size.z - 1), uvec4(1234));
    imageStore(slices, ivec3(0, 0, size.z), uvec4(4321));  // outside
}
