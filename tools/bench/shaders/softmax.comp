// Softmax of the rows of a matrix of type T, one workgroup a row: the largest value, the sum of the exponentials, which
// go to the result meanwhile, and their scaling.
#version 450
#extension GL_EXT_shader_16bit_storage : require
const uint THREADS = 256;
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X {
    T x[];
};
layout(set = 0, binding = 1) buffer Y {
    T y[];
};
layout(push_constant) uniform Parameters {
    uint columns;
};

shared float partial[THREADS];

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint start = gl_WorkGroupID.x * columns;
    float peak = -3.0e38;
    for (uint column = thread; column < columns; column += THREADS)
        peak = max(peak, float(x[start + column]));
    partial[thread] = peak;
    for (uint width = THREADS / 2; width > 0; width /= 2) {
        barrier();
        if (thread < width)
            partial[thread] = max(partial[thread], partial[thread + width]);
    }
    barrier();
    peak = partial[0];
    barrier();
    float sum = 0.0;
    for (uint column = thread; column < columns; column += THREADS) {
        float e = exp(float(x[start + column]) - peak);
        y[start + column] = T(e);
        sum += e;
    }
    partial[thread] = sum;
    for (uint width = THREADS / 2; width > 0; width /= 2) {
        barrier();
        if (thread < width)
            partial[thread] += partial[thread + width];
    }
    barrier();
    float scale = 1.0 / partial[0];
    for (uint column = thread; column < columns; column += THREADS)
        y[start + column] = T(float(y[start + column]) * scale);
}
