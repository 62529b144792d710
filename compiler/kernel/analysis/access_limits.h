// Numbers that decide how memory is accessed: each is here, and nowhere else.
#pragma once

#include <cstdint>

namespace fornax::kernel {

// Of the processor's caches.
inline constexpr uint64_t kCacheLineBytes = 64;

// A gap between elements that are needed which is cheaper to load than to skip.
inline constexpr uint64_t kRunGapBytes = 64;

// Runs of neighbouring elements of one access: so many are always worth a load or store each.
inline constexpr uint32_t kFewRuns = 4;
// If the lanes' offsets are tested first, more runs cost more than the gather that they avoid.
inline constexpr uint32_t kMaxAssumedRuns = 2 * kFewRuns;

}  // namespace fornax::kernel
