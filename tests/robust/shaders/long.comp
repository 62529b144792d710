#version 450
#extension GL_EXT_control_flow_attributes : require
// The optimized tier, for which the loop is unrolled, takes a second or more to make; the baseline tier,
// which keeps the loop, takes milliseconds.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kFactor = 1;
layout(set = 0, binding = 0) buffer Out { uint out_words[]; };
layout(push_constant) uniform Push { uint addend; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint x = i + addend;
    uint y = 1u;
    uint z = 2u;
    [[unroll]] for (uint n = 0u; n < 128u; ++n) {
        x = x * 1664525u + n * kFactor;
        if (((x >> 7) & (n + 1u)) != 0u) {
            y += (x >> 3) * z;
            if ((y & 5u) == 0u)
                x ^= y;
        } else {
            z ^= (y << (n & 15u)) + x / (z | 1u);
        }
    }
    out_words[i] = x + y + z;
}
