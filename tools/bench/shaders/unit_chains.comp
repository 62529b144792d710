// Independent chains of one function: how fast the units are that compute it, when neither memory
// nor control flow is in the way.
#version 450
#ifdef EXPONENTIAL
#define FUNCTION(x) exp(-(x))
#else
#define FUNCTION(x) (addend / ((x) + addend))
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
    for (uint step = 0; step < steps; ++step) {
        c0 = FUNCTION(c0);
        c1 = FUNCTION(c1);
        c2 = FUNCTION(c2);
        c3 = FUNCTION(c3);
    }
    result[i] = (c0 + c1) + (c2 + c3);
}
