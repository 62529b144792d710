#version 450
// bfloat16 as it is stored: from floats, back, through vectors, constants and integers; dot products.
#extension GL_EXT_bfloat16 : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) readonly buffer In { float floats[]; };
layout(set = 0, binding = 1) buffer Stored { bfloat16_t stored[]; };
layout(set = 0, binding = 2) writeonly buffer Out { float back[]; };
layout(set = 0, binding = 3) writeonly buffer Dots { float dots[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    bfloat16_t value = bfloat16_t(floats[i]);
    stored[2 * i] = value;
    bf16vec2 pair = bf16vec2(value, bfloat16_t(1.5));
    stored[2 * i + 1] = pair.y;
    back[2 * i] = float(pair.x) + float(pair.y);
    back[2 * i + 1] = float(bfloat16_t(int(i) * 1000 + 7));
    // The sum of products is exact in binary32, and rounded once.
    bf16vec4 left = bf16vec4(bfloat16_t(int(i)), bfloat16_t(3), bfloat16_t(-0.5), bfloat16_t(1));
    bf16vec4 right = bf16vec4(bfloat16_t(1.5), bfloat16_t(int(i & 255)), bfloat16_t(7), bfloat16_t(0.25));
    dots[i] = float(dot(left, right));
}
