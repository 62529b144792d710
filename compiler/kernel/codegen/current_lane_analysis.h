// The lane analysis that the emitter goes by, which differs between regions (region_lane_maps.h).
#pragma once

#include "compiler/kernel/analysis/lane_patterns.h"

namespace fornax::kernel {

// The analysis under the lane map of the current region.
class CurrentLaneAnalysis {
  public:
    explicit CurrentLaneAnalysis(const LaneAnalysis& patterns) : patterns_(&patterns) {}

    const LaneAnalysis& get() const { return *patterns_; }
    const LanePattern& pattern(ir::ValueId value) const { return patterns_->pattern(value); }
    const ConstructFacts& facts(ir::InstId construct) const { return patterns_->facts(construct); }
    bool IsBranch(ir::InstId exit) const { return patterns_->IsBranch(exit); }
    uint32_t lanes() const { return patterns_->lanes(); }
    const LaneMap& map() const { return patterns_->map(); }
    bool single_vector() const { return patterns_->single_vector(); }

  private:
    const LaneAnalysis* patterns_;
};

}  // namespace fornax::kernel
