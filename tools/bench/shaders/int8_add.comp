// z = x + scale * y on quantised bytes with saturation, an element an invocation, as quantised networks add.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X {
    int8_t x[];
};
layout(set = 0, binding = 1) readonly buffer Y {
    int8_t y[];
};
layout(set = 0, binding = 2) writeonly buffer Z {
    int8_t z[];
};
layout(push_constant) uniform Parameters {
    uint count;
    int scale;  // in 64ths
};

void main() {
    uint row_length = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uint i = gl_GlobalInvocationID.y * row_length + gl_GlobalInvocationID.x;
    if (i < count)
        z[i] = int8_t(clamp(int(x[i]) + (scale * int(y[i]) >> 6), -128, 127));
}
