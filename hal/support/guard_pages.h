// Pages of our own between two that nobody may touch: an access that leaves them is a fault, and
// does not reach what else the process has there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hal/memory.h"

namespace fornax::hal {

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

// Zeroed pages, a multiple of kMemoryPageBytes in all; null without memory. The address space of
// two more is taken.
std::byte* MapBetweenGuards(uint64_t page_bytes);
// Pages that can have other mappings: those of `file`, or zeroed ones if that is negative.
std::byte* MapSharedBetweenGuards(uint64_t page_bytes, int file);

// `begin` and `page_bytes` as above.
void UnmapBetweenGuards(std::byte* begin, uint64_t page_bytes);

}  // namespace fornax::hal
