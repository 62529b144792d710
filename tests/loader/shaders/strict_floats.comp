#version 450
// Float arithmetic under execution modes that say what is to become of denormals and how results are rounded, for each
// width by itself; results as bits. The test adds the modes: glslang keeps the last width of a mode only.
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_spirv_intrinsics : require
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4464, 4465, 4466, 4467, 4468], 4461, 64);
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { u64vec2 pairs[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint64_t results[]; };

uint at;
void put(float16_t x) { results[at++] = uint64_t(float16BitsToUint16(x)); }
void put(float x) { results[at++] = uint64_t(floatBitsToUint(x)); }
void put(double x) { results[at++] = doubleBitsToUint64(x); }

#define OPERATIONS(F, A, B)                                                                                   \
    {                                                                                                         \
        F a = A;                                                                                              \
        F b = B;                                                                                              \
        precise F sum = a + b;                                                                                \
        precise F difference = a - b;                                                                         \
        precise F product = a * b;                                                                            \
        precise F half_ = a * F(0.5);                                                                         \
        precise F plus_zero = a + F(0);                                                                       \
        precise F times_zero = a * F(0);                                                                      \
        precise F minus_self = a - a;                                                                         \
        put(sum);                                                                                             \
        put(difference);                                                                                      \
        put(product);                                                                                         \
        put(half_);                                                                                           \
        put(plus_zero);                                                                                       \
        put(times_zero);                                                                                      \
        put(minus_self);                                                                                      \
        put(-a);                                                                                              \
    }

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= pairs.length())
        return;
    u64vec2 pair = pairs[i];
    at = i * 37u;
    OPERATIONS(float16_t, uint16BitsToFloat16(uint16_t(pair.x)), uint16BitsToFloat16(uint16_t(pair.y)))
    OPERATIONS(float, uintBitsToFloat(uint(pair.x)), uintBitsToFloat(uint(pair.y)))
    OPERATIONS(double, uint64BitsToDouble(pair.x), uint64BitsToDouble(pair.y))
    put(float16_t(uintBitsToFloat(uint(pair.x))));
    put(float16_t(uint64BitsToDouble(pair.x)));
    put(float(uint64BitsToDouble(pair.x)));
    put(float(uint16BitsToFloat16(uint16_t(pair.x))));
    put(double(uint16BitsToFloat16(uint16_t(pair.x))));
    put(double(uintBitsToFloat(uint(pair.x))));
    put(float16_t(int64_t(pair.x)));
    put(float(int64_t(pair.x)));
    put(float(pair.x));
    put(float(int(pair.x)));
    put(double(int64_t(pair.x)));
    put(double(pair.x));
    put(double(uint(pair.x)));
}
