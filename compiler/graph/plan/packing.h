// The memory planner: places buffers with known lifetimes into one arena. A pure function on
// integers.
//
// Two buffers may share bytes only if their lifetimes are disjoint. Finding the smallest arena is
// NP-hard; this tries several greedy orders, improves the best by moving what sticks out to the
// front, and stops when the lower bound is reached.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fornax::graph {

// Every tensor in memory is aligned to Vulkan's greatest minStorageBufferOffsetAlignment.
inline constexpr uint64_t kTensorAlignment = 256;

// A buffer that is in use at every step of [first, last]. A size of 0 takes no room.
struct Lifetime {
    uint64_t size_bytes = 0;
    uint32_t first = 0;
    uint32_t last = 0;
};

struct Packing {
    std::vector<uint64_t> offsets;  // one a buffer, in the order given, multiples of the alignment
    uint64_t total_bytes = 0;       // of the arena
    // The most bytes in use at any step, each buffer rounded up: no packing is smaller.
    uint64_t lower_bound_bytes = 0;
};

// `alignment` is a power of two. The sum of the sizes, each rounded up, must fit 63 bits. The same
// input always gives the same packing.
Packing Pack(std::span<const Lifetime> buffers, uint64_t alignment = kTensorAlignment);

}  // namespace fornax::graph
