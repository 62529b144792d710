#version 460
// Samples of every kind at positions that a buffer holds. SAMPLER is the type of the image, POSITION
// its coordinates among `p`, GRADIENT the part of them that gradients have, OFFSET an offset of
// texels and TEXEL the coordinates of a fetch (where there are such); GATHERS says that there is a
// gather. BITS turns results into words. PLAIN leaves out what unnormalised coordinates forbid.
#ifndef BITS
#define BITS floatBitsToUint
#endif
#if DIMENSION == 0
#define SAMPLER sampler1D
#define POSITION p.x
#define GRADIENT x
#define OFFSET 3
#define TEXEL int(p.x)
#elif DIMENSION == 1
#define SAMPLER sampler1DArray
#define POSITION p.xy
#define GRADIENT x
#define OFFSET -2
#define TEXEL ivec2(p.xy)
#elif DIMENSION == 2
#ifndef SAMPLER
#define SAMPLER sampler2D
#endif
#define POSITION p.xy
#define GRADIENT xy
#define OFFSET ivec2(3, -2)
#define TEXEL ivec2(p.xy)
#define GATHERS
#elif DIMENSION == 3
#define SAMPLER sampler2DArray
#define POSITION p.xyz
#define GRADIENT xy
#define OFFSET ivec2(-8, 7)
#define TEXEL ivec3(p.xyz)
#define GATHERS
#elif DIMENSION == 4
#define SAMPLER sampler3D
#define POSITION p.xyz
#define GRADIENT xyz
#define OFFSET ivec3(1, -1, 2)
#define TEXEL ivec3(p.xyz)
#elif DIMENSION == 5
#ifndef SAMPLER
#define SAMPLER samplerCube
#endif
#define POSITION p.xyz
#define GRADIENT xyz
#define GATHERS
#else
#define SAMPLER samplerCubeArray
#define POSITION p
#define GRADIENT xyz
#define GATHERS
#endif
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) uniform SAMPLER image;
struct Query {
    vec4 position;
    vec4 gradient_x;
    vec4 gradient_y;
    vec4 lod;
};
layout(set = 0, binding = 1) readonly buffer In { Query queries[]; };
layout(set = 0, binding = 2) writeonly buffer Out { uvec4 results[]; };
layout(push_constant) uniform Push { uint operation; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    vec4 p = queries[i].position;
    float lod = queries[i].lod.x;
    uvec4 result = uvec4(0);
    switch (operation) {
    case 0:
        result = BITS(textureLod(image, POSITION, lod));
        break;
#ifndef PLAIN
    case 1:
        result = BITS(textureGrad(image, POSITION, queries[i].gradient_x.GRADIENT,
                                  queries[i].gradient_y.GRADIENT));
        break;
#ifdef OFFSET
    case 2:
        result = BITS(textureLodOffset(image, POSITION, lod, OFFSET));
        break;
    case 3:
        result = BITS(texelFetch(image, TEXEL, int(lod)));
        break;
#endif
#ifdef GATHERS
    case 4:
        result = BITS(textureGather(image, POSITION, 2));
        break;
#endif
#if DIMENSION == 2
    case 6:
        result = BITS(textureGatherOffsets(
            image, POSITION, ivec2[4](ivec2(1, 0), ivec2(-3, 2), ivec2(0, -1), ivec2(4, 4)), 1));
        break;
    case 7:
        result = BITS(textureGatherOffset(image, POSITION, ivec2(int(i % 5), -int(i % 3)), 0));
        break;
#endif
#endif
    case 5:
        result = uvec4(textureQueryLevels(image),
                       uvec4(textureSize(image, max(0, int(lod))), ivec3(0)).x, 0, 0);
        break;
    }
    results[i] = result;
}
