#version 450
// bfloat16 as it is stored: from floats, back, through vectors, constants and integers.
#extension GL_EXT_bfloat16 : require
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) readonly buffer In { float floats[]; };
layout(set = 0, binding = 1) buffer Stored { bfloat16_t stored[]; };
layout(set = 0, binding = 2) writeonly buffer Out { float back[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    bfloat16_t value = bfloat16_t(floats[i]);
    stored[2 * i] = value;
    bf16vec2 pair = bf16vec2(value, bfloat16_t(1.5));
    stored[2 * i + 1] = pair.y;
    back[2 * i] = float(pair.x) + float(pair.y);
    back[2 * i + 1] = float(bfloat16_t(int(i) * 1000 + 7));
}
