// What a kernel's regions do, as the compiler knew it before it vectorised (compiler/kernel/cost/),
// and what it takes to make a cost record of a dispatch.
//
// A region is all code that equally many invocations run between two barriers. How many is a sum:
// of all invocations of the dispatch times a number, and of counters that the kernel keeps while it
// runs (hal::WorkerFrame::region_counts). Immutable; any thread may read it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "npu/replay/records.h"

namespace fornax::kernel {

// How often something is done: `invocations` times all invocations of the dispatch, plus factors
// times counters.
struct CostCount {
    int64_t invocations = 0;
    std::map<uint32_t, int64_t> counters;

    static CostCount Of(uint32_t counter) { return {.invocations = 0, .counters = {{counter, 1}}}; }
    CostCount& Add(const CostCount& other, int64_t factor = 1);
    // Never negative.
    uint64_t Evaluate(uint64_t all_invocations, std::span<const uint64_t> counters) const;
    bool operator==(const CostCount&) const = default;
    auto operator<=>(const CostCount&) const = default;
};

// The place of what has none in a list of KernelCost.
inline constexpr uint32_t kNone = UINT32_MAX;

// What each invocation of a region accesses of a buffer. Neighbouring accesses of a region are one.
struct CostAccess {
    npu::AccessKind kind = npu::AccessKind::kStream;
    bool writes = false;
    uint64_t bytes = 0;           // of an invocation, gaps below a burst included
    uint32_t sharers = 1;         // invocations of a workgroup that access the same bytes
    bool all_workgroups = false;  // each of them accesses the same bytes
    uint32_t element_bytes = 0;   // of gathers, scatters and atomics
    uint32_t buffer = kNone;      // of KernelCost::buffers
    uint32_t grid_axes = 0;  // bit n: where it is depends on the workgroup's place along axis n
    uint32_t order = 0;      // in the kernel's text
    bool apart = false;      // as npu::Access has them
    bool far = false;
    bool in_parts = false;
    uint32_t source = kNone;  // of KernelCost::sources
    bool operator==(const CostAccess&) const = default;
};

// Matrix multiply-accumulates of a subgroup, m x n x k in each run of the region.
struct CostProduct {
    npu::MatrixType type = npu::MatrixType::kInt8;
    uint32_t m = 0, n = 0, k = 0;
    // What runs as often as sums begin: those of a loop that carries them are one product of as
    // many k as it has iterations.
    CostCount sums;
    uint32_t source = kNone;  // of KernelCost::sources
    bool operator==(const CostProduct&) const = default;
};

// What a line of the source does in a region, beside accesses of buffers and products.
struct CostLine {
    npu::Operations operations;
    uint64_t shared_bytes = 0;
};

// Where a kernel finds the descriptor of a buffer.
struct CostBuffer {
    uint32_t set = 0;
    uint32_t offset_bytes = 0;        // in the set's memory
    uint32_t dynamic_offset = kNone;  // index into DispatchFrame::dynamic_offsets
    bool operator==(const CostBuffer&) const = default;
};

struct CostRegion {
    CostCount count;
    uint32_t pass = 0;            // barriers that come before it in the kernel's text
    npu::Operations operations;   // of an invocation
    uint64_t operation_bits = 0;  // of all of them, added up
    uint64_t barriers = 0;
    std::map<uint32_t, uint64_t> shared_bytes;  // of workgroup memory, by stride between lanes
    uint64_t shared_atomics = 0;                // of single elements of it
    std::vector<CostAccess> accesses;
    std::vector<CostProduct> products;
    std::map<uint32_t, CostLine> lines;  // by KernelCost::sources

    bool empty() const {
        return operations.total() == 0 && barriers == 0 && shared_bytes.empty() &&
               shared_atomics == 0 && accesses.empty() && products.empty();
    }
};

// Barriers beyond these divide no more passes.
inline constexpr uint32_t kMostPasses = npu::kMaxPasses;

struct KernelCost {
    uint32_t counters = 0;  // words of region_counts
    uint32_t workgroup_invocations = 1;
    uint32_t subgroup_size = 1;
    uint32_t shared_bytes = 0;
    std::vector<CostRegion> regions;
    // Operations on what is one for a workgroup, by how many invocations come there.
    std::map<CostCount, uint64_t> scalar_operations;
    std::vector<CostBuffer> buffers;
    std::vector<std::string> sources;  // lines, or instructions where there are none
};

// For people, a line a region.
std::string CostText(const KernelCost& cost);

// The stored form. ParseCost gives kDataLoss for what SerializeCost did not write.
std::vector<uint8_t> SerializeCost(const KernelCost& cost);
Result<KernelCost> ParseCost(std::span<const uint8_t> bytes);

// The record of a dispatch that left these counts: `counters` has KernelCost::counters words.
// `ranges` is where KernelCost::buffers lay, and may be empty; workgroups that lie along no more
// than the axes of `grid_axes` have parts of their own of what depends on these. The lines of the
// source take as long as everything else, and a replay does not ask for them.
npu::DispatchRecord DispatchRecordOf(const KernelCost& cost,
                                     std::string name,
                                     uint64_t workgroups,
                                     std::span<const uint64_t> counters,
                                     std::span<const npu::MemoryRange> ranges = {},
                                     uint32_t grid_axes = 7,
                                     bool with_lines = true);

}  // namespace fornax::kernel
