// How a kernel's accesses to buffers lie beside each other: their kinds, as cost records have them.
//
// From index expressions (index/): the distances between invocations, what an offset depends on,
// and what it grows by from one iteration to the next. Sizes that are known at run time only are
// taken for multiples of a block's, as they nearly always are, and sums not to wrap. Offsets that
// are no such expressions, or that depend on data, are gathers and scatters.
#pragma once

#include <optional>
#include <vector>

#include "compiler/kernel/index/index_builder.h"
#include "compiler/kernel/interface/kernel_cost.h"
#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// One access that was found, where it counts.
struct FoundAccess {
    size_t region = 0;
    size_t times = 0;    // equal for accesses that run equally often
    ir::ValueId buffer;  // invalid: by device address
    ir::ValueId offset;
    ir::InstId loop;          // the innermost around it; invalid: none
    bool loop_waits = false;  // the loop has a barrier: all lanes are in the same iteration
    uint64_t bytes = 0;       // of an invocation
    uint32_t source = kNone;
    uint32_t bound = kNone;  // of KernelCost::buffers
    bool writes = false;
    bool is_atomic = false;
    bool is_matrix = false;  // of a subgroup together, whose invocations share the offset
};

class AccessCosts {
  public:
    // `varies`: by value, whether it may differ between invocations of a workgroup.
    AccessCosts(const ir::Kernel& kernel, const std::vector<bool>& varies)
        : kernel_(kernel),
          varies_(varies),
          index_(kernel,
                 {.symbol_zeros = 8,
                  .no_wrap = true,
                  .alike_workgroups = true,
                  .alike_lanes = true,
                  .growth_zeros = 8}) {}

    void Add(const FoundAccess& access);
    // Appends each region's.
    void Finish(std::vector<CostRegion>& regions);

    // Bytes between neighbouring invocations, if that is one number for all.
    std::optional<int64_t> LaneStride(ir::ValueId offset) { return LaneStride(offset, LaneAxis()); }

  private:
    // Accesses of one buffer that run equally often and lie at known distances.
    struct Cluster {
        FoundAccess first;
        std::optional<int64_t> stride;
        struct Range {
            int64_t begin = 0;
            int64_t end = 0;
        };
        std::vector<Range> ranges;  // by begin, apart
    };
    // What an offset is made of.
    struct Dependence {
        bool lanes[3] = {};
        uint32_t grid_axes = 0;  // bit n: of the workgroup's place along axis n
    };

    // Whether neighbouring lanes may have different ones: not of what is one for the workgroup.
    bool DependsOnLane(const IndexSymbol& symbol) const;
    // Along the first dimension of the workgroup that has more than one invocation.
    uint32_t LaneAxis() const;
    std::optional<int64_t> LaneStride(ir::ValueId offset, uint32_t axis);
    std::optional<int64_t> LaneDistance(ir::ValueId offset, uint32_t axis, int64_t lane);
    // Bytes that each of the first lanes adds, where together they lie close enough.
    std::optional<uint64_t> DenseBytes(const Cluster& cluster);
    static void AddRange(Cluster& cluster, Cluster::Range range);
    bool IsOfWorkgroup(const IndexSymbol& symbol) const;
    Dependence DependenceOf(ir::ValueId offset);
    CostAccess CostOf(const Cluster& cluster);
    bool StreamsAlongLoop(const Cluster& cluster, uint64_t bytes);
    // What an offset grows by in an iteration of the loop around it; 0: it does not, or not by one
    // number.
    int64_t LoopStride(const FoundAccess& access);
    // Whether the next iteration goes on elsewhere than behind what a subgroup's lanes, so many
    // bytes from each other, access in this one. Subgroups pass a loop one after the other.
    bool LeapsAlongLoop(const FoundAccess& access, uint64_t lane_bytes);
    // Whether the invocations along another dimension of the workgroup fill whole bursts.
    bool IsDenseAcross(const FoundAccess& access, uint64_t bytes);

    const ir::Kernel& kernel_;
    const std::vector<bool>& varies_;
    IndexBuilder index_;
    std::vector<Cluster> clusters_;
};

}  // namespace fornax::kernel
