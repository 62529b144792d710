// A function of two values with broadcasting: each invocation computes one element of the result.
//
// Lowering merges dimensions that either operand walks through without a gap, so operands of one shape have
// one dimension. Bindings: a, b, output. Specialisation constants 5 to 10 are the result's dimensions, 11 to
// 22 the operands' strides in elements; a stride of 0 broadcasts. Grid: x and z count elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shaders/include/workgroup.glsl"
#include "shaders/include/activation.glsl"
#include "shaders/include/strided.glsl"

layout(constant_id = 11) const uint kStrideA0 = 0;
layout(constant_id = 12) const uint kStrideA1 = 0;
layout(constant_id = 13) const uint kStrideA2 = 0;
layout(constant_id = 14) const uint kStrideA3 = 0;
layout(constant_id = 15) const uint kStrideA4 = 0;
layout(constant_id = 16) const uint kStrideA5 = 0;
layout(constant_id = 17) const uint kStrideB0 = 0;
layout(constant_id = 18) const uint kStrideB1 = 0;
layout(constant_id = 19) const uint kStrideB2 = 0;
layout(constant_id = 20) const uint kStrideB3 = 0;
layout(constant_id = 21) const uint kStrideB4 = 0;
layout(constant_id = 22) const uint kStrideB5 = 0;
layout(constant_id = 23) const uint kFunction = 0;  // a graph::BinaryFunction

layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer Output { float y[]; };

// GLSL's pow is undefined for negative bases.
float Power(float base, float exponent) {
    if (exponent == 2.0) return base * base;
    if (exponent == 0.0) return 1.0;
    float magnitude = base == 0.0 ? (exponent > 0.0 ? 0.0 : uintBitsToFloat(0x7f800000u))
                                  : pow(abs(base), exponent);
    if (base >= 0.0) return magnitude;
    if (exponent != floor(exponent)) return uintBitsToFloat(0x7fc00000u);  // NaN
    return mod(abs(exponent), 2.0) == 1.0 ? -magnitude : magnitude;
}

float Combine(float left, float right) {
    if (kFunction == 0) return left + right;
    if (kFunction == 1) return left - right;
    if (kFunction == 2) return left * right;
    if (kFunction == 3) return left / right;
    if (kFunction == 4) return max(left, right);
    if (kFunction == 5) return min(left, right);
    return Power(left, right);
}

void main() {
    uint index = LinearIndex();
    if (index >= kElements)
        return;
    uint left = index;
    uint right = index;
    if (kElements != kDim5 || kStrideA5 == 0 || kStrideB5 == 0) {
        Coordinates c = Split(index);
        left = Offset(c, uvec3(kStrideA0, kStrideA1, kStrideA2), uvec3(kStrideA3, kStrideA4, kStrideA5));
        right = Offset(c, uvec3(kStrideB0, kStrideB1, kStrideB2), uvec3(kStrideB3, kStrideB4, kStrideB5));
    }
    y[index] = Activate(Combine(a[left], b[right]));
}
