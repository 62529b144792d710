#version 460
#extension GL_ARB_sparse_texture_clamp : require
#extension GL_KHR_compute_shader_derivatives : require
// Samples whose level of detail follows from the positions of a quad's invocations. SAMPLER,
// POSITION, GRADIENT and OFFSET are as in image_sample.comp, PROJECTED is a position and its
// divisor. LINEAR takes linear groups.
#if DIMENSION == 0
#define SAMPLER sampler1D
#define POSITION p.x
#define GRADIENT x
#define OFFSET 3
#define PROJECTED vec2(p.x * q, q)
#elif DIMENSION == 1
#define SAMPLER sampler1DArray
#define POSITION p.xy
#define GRADIENT x
#define OFFSET -2
#elif DIMENSION == 2
#define SAMPLER sampler2D
#define POSITION p.xy
#define GRADIENT xy
#define OFFSET ivec2(3, -2)
#define PROJECTED vec3(p.xy * q, q)
#elif DIMENSION == 3
#define SAMPLER sampler2DArray
#define POSITION p.xyz
#define GRADIENT xy
#define OFFSET ivec2(-8, 7)
#elif DIMENSION == 4
#define SAMPLER sampler3D
#define POSITION p.xyz
#define GRADIENT xyz
#define OFFSET ivec3(1, -1, 2)
#define PROJECTED vec4(p.xyz * q, q)
#elif DIMENSION == 5
#define SAMPLER samplerCube
#define POSITION p.xyz
#define GRADIENT xyz
#else
#define SAMPLER samplerCubeArray
#define POSITION p
#define GRADIENT xyz
#endif
#ifdef LINEAR
layout(local_size_x = 32) in;
layout(derivative_group_linearKHR) in;
#else
layout(local_size_x = 8, local_size_y = 4) in;
layout(derivative_group_quadsKHR) in;
#endif
layout(set = 0, binding = 0) uniform SAMPLER image;
struct Query {
    vec4 position;
    float bias;
    float least;
    float divisor;
    float unused;
};
layout(set = 0, binding = 1) readonly buffer In { Query queries[]; };
layout(set = 0, binding = 2) writeonly buffer Out { vec4 results[]; };
layout(push_constant) uniform Push { uint operation; };
void main() {
    uint i = gl_WorkGroupID.x * 32 + gl_LocalInvocationIndex;
    vec4 p = queries[i].position;
    float q = queries[i].divisor;
    vec4 result = vec4(0);
    switch (operation) {
    case 0:
        result = texture(image, POSITION);
        break;
    case 1:
        result = textureGrad(image, POSITION, dFdxFine(p.GRADIENT), dFdyFine(p.GRADIENT));
        break;
    case 2:
        result = texture(image, POSITION, queries[i].bias);
        break;
    case 3:
        result = textureClampARB(image, POSITION, queries[i].least);
        break;
    case 4:
        result = vec4(textureQueryLod(image, p.GRADIENT), 0, 0);
        break;
#ifdef OFFSET
    case 5:
        result = textureOffset(image, POSITION, OFFSET);
        break;
#endif
#ifdef PROJECTED
    case 6:
        result = textureProj(image, PROJECTED);
        break;
#endif
    }
    results[i] = result;
}
