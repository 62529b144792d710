// The memory planner: places buffers with known lifetimes into one region. A pure function on
// integers.
//
// Two buffers may share bytes only if their lifetimes are disjoint. Finding the smallest region is
// NP-hard; this places the largest buffers first, each in the smallest gap between the buffers that
// live at the same time, which is within a few percent of the lower bound on real networks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fornax::legacy_graph {

// A buffer that is in use at every step of [first_step, last_step]. A size of 0 takes no room.
struct BufferLifetime {
    uint64_t size_bytes = 0;
    uint32_t first_step = 0;
    uint32_t last_step = 0;
};

struct MemoryPlan {
    std::vector<uint64_t> offsets;  // one a buffer, in the order given, multiples of the alignment
    uint64_t total_bytes = 0;       // of the region
};

// `alignment` is a power of two. Sizes must be so small that their sum, each rounded up to the
// alignment, fits 64 bits. The same input always gives the same plan.
MemoryPlan PlanMemory(std::span<const BufferLifetime> buffers, uint64_t alignment);

// The most bytes in use at any step, each buffer rounded up to `alignment`: no plan can be smaller.
uint64_t PeakLiveBytes(std::span<const BufferLifetime> buffers, uint64_t alignment);

}  // namespace fornax::legacy_graph
