// GELU by its approximation with tanh, on elements of type T, an element an invocation.
#version 450
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X {
    T x[];
};
layout(set = 0, binding = 1) writeonly buffer Y {
    T y[];
};
layout(push_constant) uniform Parameters {
    uint columns;
};

void main() {
    uint column = gl_GlobalInvocationID.x;
    if (column >= columns)
        return;
    uint i = gl_WorkGroupID.y * columns + column;
    float value = float(x[i]);
    float inner = 0.7978845608 * value * (1.0 + 0.044715 * value * value);
    y[i] = T(0.5 * value * (1.0 + tanh(inner)));
}
