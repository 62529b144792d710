// Floats to the bits of f16 and back, for the values that workloads use.
#pragma once

#include <cmath>
#include <cstdint>

namespace fornax::bench {

// The bits of a float that f16 holds exactly: a normal number or zero.
inline uint16_t HalfBits(float value) {
    if (value == 0) {
        return 0;
    }
    int exponent = 0;
    const float significand = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
    const auto digits = static_cast<uint32_t>(significand * 2048) & 1023;
    return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) |
                                 static_cast<uint32_t>(exponent + 14) << 10 | digits);
}

// The bits must be those of a finite number.
inline float HalfValue(uint16_t bits) {
    const uint32_t exponent = bits >> 10 & 31;
    const auto digits = static_cast<float>(bits & 1023);
    const float magnitude = exponent == 0
                                ? std::ldexp(digits, -24)
                                : std::ldexp(digits + 1024, static_cast<int>(exponent) - 25);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace fornax::bench
