#version 450
// The operations of the integer types of 8, 16 and 64 bits and of the float types of 16 and 64 bits on pairs
// from the low bits of the source words. One record for each pair: integers first, then floats.
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { u64vec2 pairs[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint64_t results[]; };

uint at;
void put(uint64_t bits) { results[at++] = bits; }
uint64_t bits(uint8_t x) { return uint64_t(x); }
uint64_t bits(uint16_t x) { return uint64_t(x); }
uint64_t bits(uint64_t x) { return x; }
uint64_t bits(float16_t x) { return uint64_t(float16BitsToUint16(x)); }
uint64_t bits(float64_t x) { return doubleBitsToUint64(x); }

// Vulkan leaves division by zero and the overflow of signed division open; shifts stay inside the width.
#define INTEGERS(S, U, WIDTH)                                                                                 \
    {                                                                                                         \
        U a = U(pair.x);                                                                                      \
        U b = U(pair.y);                                                                                      \
        S sa = S(a);                                                                                          \
        S sb = S(b);                                                                                          \
        U by = b & U(WIDTH - 1);                                                                              \
        bool divides = sb != S(0) && sb != S(-1);                                                             \
        put(bits(a + b));                                                                                     \
        put(bits(a - b));                                                                                     \
        put(bits(a * b));                                                                                     \
        put(bits(b != U(0) ? a / b : U(0)));                                                                  \
        put(bits(b != U(0) ? a % b : U(0)));                                                                  \
        put(bits(divides ? U(sa / sb) : U(0)));                                                               \
        put(bits(sa >= S(0) && sb > S(0) ? U(sa % sb) : U(0)));                                               \
        put(bits(a & b));                                                                                     \
        put(bits(a | b));                                                                                     \
        put(bits(a ^ b));                                                                                     \
        put(bits(~a));                                                                                        \
        put(bits(U(-sa)));                                                                                    \
        put(bits(a << by));                                                                                   \
        put(bits(a >> by));                                                                                   \
        put(bits(U(sa >> by)));                                                                               \
        put(bits(min(a, b)));                                                                                 \
        put(bits(max(a, b)));                                                                                 \
        put(bits(U(min(sa, sb))));                                                                            \
        put(bits(U(max(sa, sb))));                                                                            \
        put(bits(U(abs(sa))));                                                                                \
        put(bits(U(sign(sa))));                                                                               \
        put(bits(U(clamp(sa, S(-7), S(100)))));                                                               \
        uint compared = uint(a < b) | uint(a <= b) << 1 | uint(sa < sb) << 2 | uint(sa <= sb) << 3 |          \
                        uint(a == b) << 4 | uint(a != b) << 5 | uint(a > b) << 6 | uint(sa >= sb) << 7;       \
        put(uint64_t(compared));                                                                              \
    }

#define FLOATS(F, A, B)                                                                                       \
    {                                                                                                         \
        F a = A;                                                                                              \
        F b = B;                                                                                              \
        precise F sum = a + b;                                                                                \
        precise F difference = a - b;                                                                         \
        precise F product = a * b;                                                                            \
        put(bits(sum));                                                                                       \
        put(bits(difference));                                                                                \
        put(bits(product));                                                                                   \
        put(bits(a / b));                                                                                     \
        put(bits(-a));                                                                                        \
        put(bits(abs(a)));                                                                                    \
        put(bits(sign(a)));                                                                                   \
        put(bits(floor(a)));                                                                                  \
        put(bits(ceil(a)));                                                                                   \
        put(bits(trunc(a)));                                                                                  \
        put(bits(roundEven(a)));                                                                              \
        put(bits(sqrt(a)));                                                                                   \
        put(bits(min(a, b)));                                                                                 \
        put(bits(max(a, b)));                                                                                 \
        put(bits(step(b, a)));                                                                                \
        uint compared = uint(a < b) | uint(a <= b) << 1 | uint(a == b) << 2 | uint(a != b) << 3 |             \
                        uint(a > b) << 4 | uint(a >= b) << 5 | uint(isnan(a)) << 6 | uint(isinf(a)) << 7;     \
        put(uint64_t(compared));                                                                              \
    }

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= pairs.length())
        return;
    u64vec2 pair = pairs[i];
    at = i * 101u;
    INTEGERS(int8_t, uint8_t, 8)
    INTEGERS(int16_t, uint16_t, 16)
    INTEGERS(int64_t, uint64_t, 64)
    FLOATS(float16_t, uint16BitsToFloat16(uint16_t(pair.x)), uint16BitsToFloat16(uint16_t(pair.y)))
    FLOATS(float64_t, uint64BitsToDouble(pair.x), uint64BitsToDouble(pair.y))
}
