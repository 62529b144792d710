// Independent chains of one function: how fast the units are that compute it, when neither memory
// nor control flow is in the way.
#version 450
#ifdef EXPONENTIAL
#define FUNCTION(x) exp(-(x))
#elif defined(DIVISION)
#define FUNCTION(x) (addend / ((x) + addend))
#else
// Ten simple operations, half of them on integers. No product is added to anything, or both would
// be one operation.
float Simple(float x, float addend) {
    uint bits = floatBitsToUint(x);
    bits = (((bits >> 3) ^ bits) + 12345) & 0x7fffff;
    float y = max(float(int(bits)) * 2.384185791015625e-7, 0.25);
    return y < addend ? y : 2.75 - y;
}
#define FUNCTION(x) Simple(x, addend)
#endif
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) buffer Result {
    float result[];
};
layout(push_constant) uniform Parameters {
    uint steps;
    float addend;
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    float c0 = result[i];
    float c1 = c0 + 1.0;
    float c2 = c0 + 2.0;
    float c3 = c0 + 3.0;
    float c4 = c0 + 4.0;
    float c5 = c0 + 5.0;
    float c6 = c0 + 6.0;
    float c7 = c0 + 7.0;
    for (uint step = 0; step < steps; ++step) {
        c0 = FUNCTION(c0);
        c1 = FUNCTION(c1);
        c2 = FUNCTION(c2);
        c3 = FUNCTION(c3);
        c4 = FUNCTION(c4);
        c5 = FUNCTION(c5);
        c6 = FUNCTION(c6);
        c7 = FUNCTION(c7);
    }
    result[i] = ((c0 + c1) + (c2 + c3)) + ((c4 + c5) + (c6 + c7));
}
