#version 460
// Images of several samples. WRITES: every sample gets a value of its own, and some that do not
// exist are written, too. Otherwise they are read as storage images, fetched, and their sizes told.
#extension GL_ARB_shader_texture_image_samples : require
#extension GL_EXT_samplerless_texture_functions : require
layout(local_size_x = 8, local_size_y = 4, local_size_z = 4) in;
layout(set = 0, binding = 0, r32ui) uniform uimage2DMS plane;
layout(set = 0, binding = 1, rgba8) uniform image2DMSArray planes;
layout(set = 0, binding = 2) buffer Out { uint results[]; };
#if !WRITES
layout(set = 0, binding = 3) uniform usampler2DMS fetched;
layout(set = 0, binding = 4) uniform texture2DMSArray fetched_layers;
#endif
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    int which = int(gl_GlobalInvocationID.z);
#if WRITES
    imageStore(plane, at, which, uvec4(at.x + 100 * at.y + 10000 * which));
    imageAtomicAdd(plane, at, which, 1000000u);
    for (int layer = 0; layer < 4; ++layer)
        imageStore(planes, ivec3(at, layer), which, vec4(at.x, at.y, which, layer) / 255.0);
#else
    uint i = (which * gl_NumWorkGroups.y * 4 + at.y) * gl_NumWorkGroups.x * 8 + at.x;
    results[10 * i + 0] = imageLoad(plane, at, which).x;
    results[10 * i + 1] = texelFetch(fetched, at, which).x;
    for (int layer = 0; layer < 4; ++layer) {
        results[10 * i + 2 + layer] = packUnorm4x8(imageLoad(planes, ivec3(at, layer), which));
        results[10 * i + 6 + layer] =
            packUnorm4x8(texelFetch(fetched_layers, ivec3(at, layer), which));
    }
    if (at == ivec2(0) && which == 0) {
        uint end = 10 * gl_NumWorkGroups.x * gl_NumWorkGroups.y * gl_NumWorkGroups.z * 128;
        results[end] = imageSamples(plane);
        results[end + 1] = textureSamples(fetched);
        results[end + 2] = imageSize(planes).x * 10000 + imageSize(planes).y * 100 + imageSize(planes).z;
        results[end + 3] = textureSize(fetched).x * 100 + textureSize(fetched).y;
    }
#endif
}
