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

// An element that goes by an address of its own costs this much of a whole vector.
inline constexpr double kElementCost = 1.5;

// A shuffle draws from so many registers at most before LLVM takes too long for it.
inline constexpr uint64_t kLongestShuffle = 8;

// The elements of a few lanes are loaded as one piece if each has so many words at most, and narrow
// ones if a piece has so many bytes at least.
inline constexpr uint64_t kMaxPieceWords = 4;
inline constexpr uint64_t kLeastPieceBytes = 16;

// Words of a lane that are transposed in registers.
inline constexpr uint64_t kMaxTransposedWords = 16;

// Elements of a lane that may stay in the order of memory.
inline constexpr uint64_t kMostPackedElements = 16;

// Smaller accesses would prefetch each line too often.
inline constexpr uint64_t kLeastPrefetchedBytes = 32;
inline constexpr uint64_t kLeastPrefetchedLaneBytes = 16;

// A tile that is farther away has left the caches near the processor before it is used.
inline constexpr int64_t kMostTileBytes = 128 * 1024;

// Rows farther apart than this many strides, or offsets in bytes, would let the test of their
// bounds overflow.
inline constexpr uint64_t kMaxRowDistance = uint64_t{1} << 30;
inline constexpr int64_t kMaxRowOffset = int64_t{1} << 40;

}  // namespace fornax::kernel
