#version 450
#extension GL_EXT_samplerless_texture_functions : require
// Images and samplers of sets, which the test maps to descriptor heaps.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) uniform sampler2D combined[2];
layout(set = 0, binding = 1) uniform texture2D separate;
layout(set = 0, binding = 2) uniform sampler wrapping;
layout(set = 0, binding = 3, rgba8) uniform image2D stored;
layout(set = 0, binding = 4) writeonly buffer Out { vec4 values[]; } result;

void main() {
    for (int level = 0; level < 3; ++level) {
        result.values[level] = textureLod(combined[1], vec2(0.5), float(level));
        result.values[3 + level] = texelFetch(separate, ivec2(0), level);
    }
    // The first is clamped to a white border, the second wraps around.
    result.values[6] = textureLod(combined[1], vec2(-1.0), 0.0);
    result.values[7] = textureLod(sampler2D(separate, wrapping), vec2(1.5), 1.0);
    imageStore(stored, ivec2(1, 0), vec4(0.0, 1.0, 0.0, 1.0));
    result.values[8] = imageLoad(stored, ivec2(0, 0));
    // A null descriptor.
    result.values[9] = textureLod(combined[0], vec2(-1.0), 0.0);
}
