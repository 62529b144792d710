// A square matrix transposed the naive way: reads along rows, writes along columns.
#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) readonly buffer Input {
    float source[];
};
layout(set = 0, binding = 1) writeonly buffer Output {
    float destination[];
};
layout(push_constant) uniform Parameters {
    uint side;
};

void main() {
    uvec2 position = gl_GlobalInvocationID.xy;
    destination[position.x * side + position.y] = source[position.y * side + position.x];
}
