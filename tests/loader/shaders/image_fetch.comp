#version 460
// Every texel of a level of an array of images, by fetches. SAMPLER is the type of the images and
// BITS turns texels into words.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform SAMPLER image;
layout(set = 0, binding = 1) buffer Out { uvec4 texels[]; };
layout(push_constant) uniform Level { int level; };
void main() {
    ivec3 size = textureSize(image, level);
    ivec3 at = ivec3(gl_GlobalInvocationID);
    if (all(lessThan(at, size)))
        texels[(at.z * size.y + at.y) * size.x + at.x] = BITS(texelFetch(image, at, level));
}
