// What is prefetched.
//
// A loop that brings tiles of buffers into workgroup memory and then computes with them waits for
// memory in every iteration: all loads of an iteration come at once, and the next iteration's only
// after a barrier. So the region that computes prefetches the next iteration's tile, a vector's
// part at a time: the first that follows and is long enough, or else the one that loads.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/index/index_builder.h"

namespace fornax::kernel {

class PrefetchPlan {
  public:
    // At the start of a region.
    struct Iteration {
        // A counter, and what an iteration adds to it.
        std::vector<std::pair<ir::ValueId, int64_t>> steps;
        std::vector<ir::ValueId> computed;  // with the next iteration's counters, in this order
        std::vector<ir::InstId> loads;      // of an earlier region, whose offsets are then known
    };

    PrefetchPlan(const ir::Kernel& kernel,
                 const LaneAnalysis& patterns,
                 const BarrierRegions& regions,
                 const std::vector<bool>& workgroup_level);

    // Null if nothing is prefetched there.
    const Iteration* Find(uint32_t region) const {
        const auto found = iterations_.find(region);
        return found == iterations_.end() ? nullptr : &found->second;
    }

  private:
    using Steps = std::vector<std::pair<ir::ValueId, int64_t>>;

    void VisitLoop(const ir::Instruction& loop);
    Steps FindSteps(const ir::Instruction& loop);
    void AddLoads(const BarrierRegion& from, Iteration& iteration);
    bool HasItsLine(ir::InstId load, const Iteration& iteration);
    bool Compute(ir::ValueId value, Iteration& iteration, uint32_t depth) const;
    void FindDependents(const Steps& steps);
    uint64_t Weight(ir::InstId id) const;

    const ir::Kernel& kernel_;
    const LaneAnalysis& patterns_;
    const BarrierRegions& regions_;
    std::vector<bool> depends_;  // by value: on the counters of the current loop
    IndexBuilder index_;
    std::map<uint32_t, Iteration> iterations_;  // by region
};

}  // namespace fornax::kernel
