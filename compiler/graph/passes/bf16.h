// Rounding of constants to bf16, for the passes that pack them.
#pragma once

#include <bit>
#include <cstdint>

namespace fornax::graph {

// The upper half of the number's bits, rounded to nearest, ties to even; a NaN stays one.
inline uint16_t RoundedToBf16(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    return static_cast<uint16_t>(is_nan ? bits >> 16 | 0x40U
                                        : (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

}  // namespace fornax::graph
