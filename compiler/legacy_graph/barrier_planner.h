// The barrier planner: before which dispatches memory must be made visible. A pure function on byte
// ranges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fornax::legacy_graph {

struct ByteRange {
    uint64_t begin = 0;
    uint64_t end = 0;  // one behind the last byte
};

struct DispatchAccess {
    std::vector<ByteRange> reads;
    ByteRange write;
    // Writes of dispatches of one group do not touch the same bytes, even where their ranges
    // overlap.
    uint32_t write_group = 0;
};

// For each dispatch, whether it reads or writes what an earlier dispatch behind the last barrier
// wrote, or writes what one read. A barrier orders everything before it with everything behind it.
std::vector<bool> PlanBarriers(std::span<const DispatchAccess> dispatches);

}  // namespace fornax::legacy_graph
