// The vectors that blocks of the types iq1, iq2 and iq3 name by number. Formats fix them.
#pragma once

#include <cstdint>
#include <span>

namespace fornax::ggml_frontend {

// A code is a vector's elements, the first in the lowest bits.
struct Codebook {
    std::span<const uint16_t> codes;
    int elements = 8;
    int bits = 2;                    // of an element
    std::span<const float> numbers;  // of an element's bits
};

enum class Vectors : uint8_t { kIq1, kIq2Xxs, kIq2Xs, kIq2S, kIq3Xxs, kIq3S };
Codebook CodebookOf(Vectors vectors);

}  // namespace fornax::ggml_frontend
