#version 460
// Every texel of a level of an array of images, or of a 3D image, by fetches or (SAMPLED) by a sampler
// of nearest texels. SAMPLER is the type of the images and BITS turns texels into words.
#ifdef SAMPLED
#define TEXEL(image, at, level) textureLod(image, (vec3(at) + 0.5) / textureSize(image, level), level)
#else
#define TEXEL(image, at, level) texelFetch(image, at, level)
#endif
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform SAMPLER image;
layout(set = 0, binding = 1) buffer Out { uvec4 texels[]; };
layout(push_constant) uniform Level { int level; };
void main() {
    ivec3 size = textureSize(image, level);
    ivec3 at = ivec3(gl_GlobalInvocationID);
    if (all(lessThan(at, size)))
        texels[(at.z * size.y + at.y) * size.x + at.x] = BITS(TEXEL(image, at, level));
}
