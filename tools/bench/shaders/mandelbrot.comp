// Escape times of the Mandelbrot set, a loop that each invocation leaves at its own time: divergence.
#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) writeonly buffer Escape {
    uint escape[];
};
layout(push_constant) uniform Parameters {
    uint side;
    uint max_steps;
};

void main() {
    uvec2 point = gl_GlobalInvocationID.xy;
    float scale = 3.0 / float(side);
    float cx = float(point.x) * scale - 2.25;
    float cy = float(point.y) * scale - 1.5;
    float zx = 0.0;
    float zy = 0.0;
    uint step = 0;
    while (step < max_steps && zx * zx + zy * zy <= 4.0) {
        float next_zx = zx * zx - zy * zy + cx;
        zy = 2.0 * zx * zy + cy;
        zx = next_zx;
        ++step;
    }
    escape[point.y * side + point.x] = step;
}
