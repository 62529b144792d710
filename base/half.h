// IEEE binary16 in software, for constants and the interpreter; the host's compiler may lack the
// type.
#pragma once

#include <bit>
#include <cstdint>

namespace fornax {

// Exact; a NaN keeps its payload.
inline double HalfToDouble(uint16_t half) {
    uint64_t sign = uint64_t{half} >> 15 << 63;
    uint32_t exponent = half >> 10 & 31;
    uint64_t mantissa = half & 1023;
    if (exponent == 31) {
        return std::bit_cast<double>(sign | uint64_t{0x7ff} << 52 | mantissa << 42);
    }
    if (exponent == 0) {
        double magnitude = static_cast<double>(mantissa) * 0x1p-24;
        return sign ? -magnitude : magnitude;
    }
    return std::bit_cast<double>(sign | (uint64_t{exponent} + 1008) << 52 | mantissa << 42);
}

// Rounds to nearest even, overflows to infinity, keeps denormals; a NaN becomes quiet.
inline uint16_t DoubleToHalf(double value) {
    uint64_t bits = std::bit_cast<uint64_t>(value);
    uint16_t sign = static_cast<uint16_t>(bits >> 63 << 15);
    int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
    uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
    if (exponent == 1024) {
        return static_cast<uint16_t>(sign | 0x7c00 |
                                     (mantissa ? 0x200 | static_cast<int>(mantissa >> 42) : 0));
    }
    if (exponent > 15) {
        return sign | 0x7c00;
    }
    if (exponent < -25) {
        return sign;
    }
    // Units of the result's last place, with the leading bit: 1024..2047 for normal results.
    int target_exponent = exponent < -14 ? -14 : exponent;
    uint32_t shift = static_cast<uint32_t>(42 + target_exponent - exponent);
    uint64_t significand = mantissa | uint64_t{1} << 52;
    uint64_t units = significand >> shift;
    uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
    uint64_t half_unit = uint64_t{1} << (shift - 1);
    if (rest > half_unit || (rest == half_unit && (units & 1))) {
        ++units;
    }
    // A carry out of the significand lands in the exponent, up to infinity.
    return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(target_exponent + 14) << 10) +
                                         static_cast<uint32_t>(units)));
}

inline float HalfToFloat(uint16_t half) {
    return static_cast<float>(HalfToDouble(half));
}
inline uint16_t FloatToHalf(float value) {
    return DoubleToHalf(value);
}

}  // namespace fornax
