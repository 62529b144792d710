// y = a * x + y on 16-bit floats, an element an invocation.
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X {
    float16_t x[];
};
layout(set = 0, binding = 1) buffer Y {
    float16_t y[];
};
layout(push_constant) uniform Parameters {
    uint count;
    float a;
};

void main() {
    uint row_length = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uint i = gl_GlobalInvocationID.y * row_length + gl_GlobalInvocationID.x;
    if (i < count)
        y[i] = float16_t(a) * x[i] + y[i];
}
