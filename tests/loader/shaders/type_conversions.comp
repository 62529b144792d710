#version 450
// Every conversion between the integer and float types of 8 to 64 bits, from the low bits of the source words.
// One record of 121 results for each word.
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uint64_t words[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint64_t results[]; };

uint at;
void put(uint64_t bits) { results[at++] = bits; }

uint64_t bits(int8_t x) { return uint64_t(uint8_t(x)); }
uint64_t bits(uint8_t x) { return uint64_t(x); }
uint64_t bits(int16_t x) { return uint64_t(uint16_t(x)); }
uint64_t bits(uint16_t x) { return uint64_t(x); }
uint64_t bits(int32_t x) { return uint64_t(uint32_t(x)); }
uint64_t bits(uint32_t x) { return uint64_t(x); }
uint64_t bits(int64_t x) { return uint64_t(x); }
uint64_t bits(uint64_t x) { return x; }
uint64_t bits(float16_t x) { return uint64_t(float16BitsToUint16(x)); }
uint64_t bits(float32_t x) { return uint64_t(floatBitsToUint(x)); }
uint64_t bits(float64_t x) { return doubleBitsToUint64(x); }

#define FROM(value)                                                                                           \
    {                                                                                                         \
        put(bits(int8_t(value)));                                                                             \
        put(bits(uint8_t(value)));                                                                            \
        put(bits(int16_t(value)));                                                                            \
        put(bits(uint16_t(value)));                                                                           \
        put(bits(int32_t(value)));                                                                            \
        put(bits(uint32_t(value)));                                                                           \
        put(bits(int64_t(value)));                                                                            \
        put(bits(uint64_t(value)));                                                                           \
        put(bits(float16_t(value)));                                                                          \
        put(bits(float32_t(value)));                                                                          \
        put(bits(float64_t(value)));                                                                          \
    }

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= words.length())
        return;
    uint64_t word = words[i];
    at = i * 121u;
    FROM(int8_t(word))
    FROM(uint8_t(word))
    FROM(int16_t(word))
    FROM(uint16_t(word))
    FROM(int32_t(word))
    FROM(uint32_t(word))
    FROM(int64_t(word))
    FROM(word)
    FROM(uint16BitsToFloat16(uint16_t(word)))
    FROM(uintBitsToFloat(uint32_t(word)))
    FROM(uint64BitsToDouble(word))
}
