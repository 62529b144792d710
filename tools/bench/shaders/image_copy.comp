// Copies texels the way that SOURCE says, from buffers or images of one FORMAT (TEXEL in a buffer)
// in DIMENSIONS dimensions.
#version 450

#define SOURCE_BUFFER 0
#define SOURCE_STORAGE 1
#define SOURCE_FETCH 2
#define SOURCE_SAMPLE 3

#if DIMENSIONS == 3
layout(local_size_x = 16, local_size_y = 8, local_size_z = 2) in;
#define IMAGE image3D
#define SAMPLER sampler3D
#define POSITION(v) ivec3(v)
#define REAL_POSITION vec3
#define SHIFT shift.xyz
#else
layout(local_size_x = 16, local_size_y = 16) in;
#define IMAGE image2D
#define SAMPLER sampler2D
#define POSITION(v) ivec2((v).xy)
#define REAL_POSITION vec2
#define SHIFT shift.xy
#endif

#if SOURCE == SOURCE_BUFFER
layout(set = 0, binding = 0) readonly buffer Input {
    TEXEL source[];
};
layout(set = 0, binding = 1) writeonly buffer Output {
    TEXEL destination[];
};
#else
#if SOURCE == SOURCE_STORAGE
layout(set = 0, binding = 0, FORMAT) uniform readonly IMAGE source;
#else
layout(set = 0, binding = 0) uniform SAMPLER source;
#endif
layout(set = 0, binding = 1, FORMAT) uniform writeonly IMAGE destination;
#endif

layout(push_constant) uniform Parameters {
    uvec4 extent;
    vec4 shift;  // texels, of samples
};

void main() {
    const uvec3 id = gl_GlobalInvocationID;
    if (any(greaterThanEqual(id, extent.xyz))) {
        return;
    }
#if SOURCE == SOURCE_BUFFER
    const uint index = (id.z * extent.y + id.y) * extent.x + id.x;
    destination[index] = source[index];
#elif SOURCE == SOURCE_STORAGE
    imageStore(destination, POSITION(id), imageLoad(source, POSITION(id)));
#elif SOURCE == SOURCE_FETCH
    imageStore(destination, POSITION(id), texelFetch(source, POSITION(id), 0));
#else
    const REAL_POSITION position =
        (REAL_POSITION(POSITION(id)) + 0.5 + SHIFT) / REAL_POSITION(POSITION(extent));
    imageStore(destination, POSITION(id), textureLod(source, position, 0.0));
#endif
}
