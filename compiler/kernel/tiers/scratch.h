// Scratch memory of kernels whose final code is not known yet.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fornax::kernel {

// What is set aside for code that replaces code with `first_bytes`. Memory that is not touched
// costs nothing.
constexpr uint32_t ScratchForBoth(uint32_t first_bytes) {
    constexpr uint32_t kMore = 1u << 20;
    constexpr uint32_t kMost = 64u << 20;
    return std::max(first_bytes, std::min(kMost, first_bytes * 2 + kMore));
}

}  // namespace fornax::kernel
