// Where the elements lie that the lanes of one access touch: sorted into runs of neighbours, so
// that memory selection moves runs instead of lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/analysis/lane_patterns.h"

namespace fornax::kernel {

struct RowRun {
    uint64_t first = 0;  // in elements from the row's lowest
    uint64_t count = 0;
};

// The lanes whose offset has the same multiple of the pattern's stride, and the same stride; a
// pattern without rows is one row.
struct LayoutRow {
    int64_t multiple = 0;
    uint32_t lane = 0;   // one of the lanes
    int64_t lowest = 0;  // bytes from the pattern's base plus multiple * stride
    uint64_t span = 0;   // bytes from the lowest to the end of the highest element
    std::vector<RowRun> runs;
};

struct LaneLayout {
    std::vector<LayoutRow> rows;  // by increasing multiple, or by group
    std::vector<uint32_t> row;    // by lane
    std::vector<uint64_t> first;  // by lane: its first element, counted from its row's lowest
    bool distinct = true;         // no element of a row is touched twice
    bool dense = true;            // runs have no gaps
    uint64_t elements = 0;        // in all runs
    uint32_t num_runs = 0;
};

// Each lane touches `count` elements from its offset on. Elements at most `gap_bytes` apart share a
// run. Nothing if lanes are not whole elements apart. `pattern` has constant offsets or rows.
std::optional<LaneLayout> MakeLaneLayout(const LanePattern& pattern,
                                         uint64_t element_bytes,
                                         size_t count,
                                         uint64_t gap_bytes);

// What an access by runs is worth: otherwise each lane goes by its own address. `vector_bytes` is
// the register's size.
bool WorthLoadingRuns(const LaneLayout& layout, uint32_t lanes, size_t count);
bool WorthStoringRuns(const LaneLayout& layout, uint32_t lanes, size_t count);

// Estimated cost of all memory accesses of a kernel, per invocation, in vector operations; accesses
// in loops count for more. Compares the lane maps of one kernel.
double EstimateMemoryCost(const ir::Kernel& kernel,
                          const LaneAnalysis& patterns,
                          uint32_t vector_bytes);
// The same for a barrier region.
double EstimateMemoryCost(const ir::Kernel& kernel,
                          const LaneAnalysis& patterns,
                          uint32_t vector_bytes,
                          const BarrierRegion& region);

}  // namespace fornax::kernel
