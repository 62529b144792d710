// Sums of the rows of a matrix, one workgroup a row, by a tree in shared memory with eight barriers.
#version 450
const uint THREADS = 256;
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer Matrix {
    float matrix[];
};
layout(set = 0, binding = 1) writeonly buffer Sums {
    float sums[];
};
layout(push_constant) uniform Parameters {
    uint columns;
};

shared float partial[THREADS];

void main() {
    uint row = gl_WorkGroupID.x;
    uint thread = gl_LocalInvocationID.x;
    float sum = 0.0;
    for (uint column = thread; column < columns; column += THREADS)
        sum += matrix[row * columns + column];
    partial[thread] = sum;
    for (uint width = THREADS / 2; width > 0; width /= 2) {
        barrier();
        if (thread < width)
            partial[thread] += partial[thread + width];
    }
    if (thread == 0)
        sums[row] = partial[0];
}
