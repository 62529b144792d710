// What is fetched ahead.
//
// A loop that brings tiles of buffers into workgroup memory and then computes with them waits for
// memory in every round: all loads of a round come at once, and the next round's only after a
// barrier. So the segment that computes asks for the next round's tile, a vector's part at a time:
// the first that follows and is long enough, or else the one that loads.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compiler/kernel/analysis/regions.h"
#include "compiler/kernel/index/index_builder.h"

namespace fornax::kernel {

class PrefetchPlan {
  public:
    // At the start of a segment.
    struct Round {
        std::vector<std::pair<ir::ValueId, int64_t>> steps;  // a counter, what a round adds to it
        std::vector<ir::ValueId> computed;  // with the next round's counters, in this order
        std::vector<ir::InstId> loads;      // of an earlier segment, whose offsets are then known
    };

    PrefetchPlan(const ir::Kernel& kernel,
                 const ShapeAnalysis& shapes,
                 const Regions& regions,
                 const std::vector<bool>& workgroup_level);

    // Null if nothing is fetched there.
    const Round* Find(uint32_t segment) const {
        const auto found = rounds_.find(segment);
        return found == rounds_.end() ? nullptr : &found->second;
    }

  private:
    using Steps = std::vector<std::pair<ir::ValueId, int64_t>>;

    void VisitLoop(const ir::Instruction& loop);
    Steps FindSteps(const ir::Instruction& loop);
    void AddLoads(const Segment& from, Round& round);
    bool HasItsLine(ir::InstId load, const Round& round);
    bool Compute(ir::ValueId value, Round& round, uint32_t depth) const;
    void FindDependents(const Steps& steps);
    uint64_t Weight(ir::InstId id) const;

    const ir::Kernel& kernel_;
    const ShapeAnalysis& shapes_;
    const Regions& regions_;
    std::vector<bool> depends_;  // by value: on the counters of the current loop
    IndexBuilder index_;
    std::map<uint32_t, Round> rounds_;  // by segment
};

}  // namespace fornax::kernel
