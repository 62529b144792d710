// Widths of single barrier regions.
//
// Between two barriers nothing says which invocations run side by side, so a region that keeps
// nothing a lane across its ends may be wider than the rest of the kernel: one that brings a tile
// into workgroup memory transposed takes several rows of the tile at once, so that it writes runs
// where one row of lanes would write single elements.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/codegen/emit.h"

namespace fornax::kernel {

class RegionLaneMaps {
  public:
    struct Layout {
        std::shared_ptr<const LaneAnalysis> patterns;
        // Values from outside that this width sees otherwise, each after what it is made of: the
        // region computes them anew.
        std::vector<ir::ValueId> recomputed;
    };

    RegionLaneMaps(const ir::Kernel& kernel,
                   const EmitOptions& options,
                   const LaneAnalysis& patterns,
                   const BarrierRegions& regions,
                   const std::vector<bool>& workgroup_level);

    // Null where the region has the kernel's own width.
    const Layout* Find(uint32_t region) const {
        const auto found = layouts_.find(region);
        return found == layouts_.end() ? nullptr : &found->second;
    }

  private:
    bool MayDiffer(const BarrierRegion& region) const;
    bool TreeMayDiffer(ir::InstId id) const;
    void Choose(uint32_t region);
    std::shared_ptr<const LaneAnalysis> Analyse(uint32_t lanes);
    bool Recompute(uint32_t region, Layout& layout) const;
    bool RecomputeTree(ir::InstId id, uint32_t region, Layout& layout) const;
    bool RecomputeValue(ir::ValueId value, uint32_t region, Layout& layout, uint32_t depth) const;

    const ir::Kernel& kernel_;
    const EmitOptions& options_;
    const LaneAnalysis& patterns_;
    const BarrierRegions& regions_;
    const std::vector<bool>& workgroup_level_;
    std::map<uint32_t, std::shared_ptr<const LaneAnalysis>> analyses_;  // by width
    std::map<uint32_t, Layout> layouts_;
};

}  // namespace fornax::kernel
