// The barrier planner: before which dispatches memory must be made visible. A pure function on byte
// ranges.
//
// Which barriers are needed depends on where blocks lie, since a block may share bytes with one
// that an earlier dispatch still reads; so barriers are planned with the memory, for given sizes,
// and a plan holds none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fornax::graph {

struct ByteRange {
    uint32_t region = 0;  // ranges of different regions never overlap
    uint64_t begin = 0;
    uint64_t end = 0;  // one behind the last byte
};

// What a dispatch may touch. What it reads and writes is in both lists; bytes that nothing writes
// may be left out.
struct DispatchAccess {
    std::vector<ByteRange> reads;
    std::vector<ByteRange> writes;
};

// For each dispatch, whether it reads or writes what an earlier dispatch behind the last barrier
// wrote, or writes what one read. A barrier orders everything before it with everything behind it.
std::vector<bool> PlanBarriers(std::span<const DispatchAccess> dispatches);

}  // namespace fornax::graph
