#version 450
#extension GL_GOOGLE_include_directive : require
// Runs control_functions.glsl: neighbouring invocations take different ways.
layout(local_size_x = 60) in;
layout(set = 0, binding = 0) buffer Out { uint results[]; };
#include "tests/loader/shaders/control_functions.glsl"
void main() {
    uint i = gl_GlobalInvocationID.x;
    for (uint which = 0u; which < CONTROL_FUNCTIONS; ++which)
        results[i * CONTROL_FUNCTIONS + which] = Control(which, i);
    // Now the functions diverge too.
    results[gl_NumWorkGroups.x * 60u * CONTROL_FUNCTIONS + i] = Control(i % CONTROL_FUNCTIONS, i);
}
