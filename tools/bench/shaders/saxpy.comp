// y = a * x + y. The grid has two dimensions because one alone would pass the limit of 65,535 groups.
#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer X {
    float x[];
};
layout(set = 0, binding = 1) buffer Y {
    float y[];
};
layout(push_constant) uniform Parameters {
    uint count;
    float a;
};

void main() {
    uint row_length = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uint i = gl_GlobalInvocationID.y * row_length + gl_GlobalInvocationID.x;
    if (i < count)
        y[i] = a * x[i] + y[i];
}
