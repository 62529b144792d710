// Numbers that decide how memory is accessed: each is here, and nowhere else.
#pragma once

#include <cstdint>

namespace fornax::kernel {

// A line of the processor's caches.
inline constexpr uint64_t kCacheLineBytes = 64;

// A gap of so many bytes between elements that are needed is cheaper to load than to skip.
inline constexpr uint64_t kRunGapBytes = 64;

// So many runs of neighbouring elements of one access are always worth a load or store each.
inline constexpr uint32_t kFewRuns = 4;
// If the lanes' offsets are tested first, more runs cost more than the gather that they avoid.
inline constexpr uint32_t kMaxAssumedRuns = 2 * kFewRuns;

}  // namespace fornax::kernel
