// The rows of a matrix of type T shifted and scaled to mean 0 and variance 1, one workgroup a row.
#version 450
#extension GL_EXT_shader_16bit_storage : require
const uint THREADS = 256;
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

shared vec2 partial[THREADS];

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint start = gl_WorkGroupID.x * columns;
    vec2 sums = vec2(0.0);
    for (uint column = thread; column < columns; column += THREADS) {
        float value = float(x[start + column]);
        sums += vec2(value, value * value);
    }
    partial[thread] = sums;
    for (uint width = THREADS / 2; width > 0; width /= 2) {
        barrier();
        if (thread < width)
            partial[thread] += partial[thread + width];
    }
    barrier();
    float mean = partial[0].x / float(columns);
    float variance = partial[0].y / float(columns) - mean * mean;
    float scale = inversesqrt(variance + 1.0e-5);
    for (uint column = thread; column < columns; column += THREADS)
        y[start + column] = T((float(x[start + column]) - mean) * scale);
}
