// A dispatch that tells that it ran, and with which push constants and buffers: as many of both as
// kernels of ggml have.
#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Constants {
    uint index;
    uint value;
    uint rest[30];
};
layout(set = 0, binding = 0) buffer Out { uint words[]; };
layout(set = 0, binding = 1) readonly buffer In1 { uint in1; };
layout(set = 0, binding = 2) readonly buffer In2 { uint in2; };
layout(set = 0, binding = 3) readonly buffer In3 { uint in3; };
layout(set = 0, binding = 4) readonly buffer In4 { uint in4; };
layout(set = 0, binding = 5) readonly buffer In5 { uint in5; };
layout(set = 0, binding = 6) readonly buffer In6 { uint in6; };
layout(set = 0, binding = 7) readonly buffer In7 { uint in7; };
layout(set = 0, binding = 8) readonly buffer In8 { uint in8; };
layout(set = 0, binding = 9) readonly buffer In9 { uint in9; };
layout(set = 0, binding = 10) readonly buffer In10 { uint in10; };
layout(set = 0, binding = 11) readonly buffer In11 { uint in11; };

void main() {
    uint sum = 1 * in1 +
               2 * in2 +
               3 * in3 +
               4 * in4 +
               5 * in5 +
               6 * in6 +
               7 * in7 +
               8 * in8 +
               9 * in9 +
               10 * in10 +
               11 * in11;
    words[index] = value + rest[29] + sum;
}
