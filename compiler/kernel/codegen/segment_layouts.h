// Widths of single segments.
//
// Between two barriers nothing says which invocations run side by side, so a segment that keeps
// nothing a lane across its ends may be wider than the rest of the kernel: one that brings a tile
// into workgroup memory transposed takes several rows of the tile at once, so that it writes runs
// where one row of lanes would write single elements.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "compiler/kernel/analysis/regions.h"
#include "compiler/kernel/codegen/emit.h"

namespace fornax::kernel {

class SegmentLayouts {
  public:
    struct Layout {
        std::shared_ptr<const ShapeAnalysis> shapes;
        // Values from outside that this width sees otherwise, each after what it is made of: the
        // segment computes them anew.
        std::vector<ir::ValueId> recomputed;
    };

    SegmentLayouts(const ir::Kernel& kernel,
                   const EmitOptions& options,
                   const ShapeAnalysis& shapes,
                   const Regions& regions,
                   const std::vector<bool>& workgroup_level);

    // Null where the segment has the kernel's own width.
    const Layout* Find(uint32_t segment) const {
        const auto found = layouts_.find(segment);
        return found == layouts_.end() ? nullptr : &found->second;
    }

  private:
    bool MayDiffer(const Segment& segment) const;
    bool TreeMayDiffer(ir::InstId id) const;
    void Choose(uint32_t segment);
    std::shared_ptr<const ShapeAnalysis> Analyse(uint32_t lanes);
    bool Recompute(uint32_t segment, Layout& layout) const;
    bool RecomputeTree(ir::InstId id, uint32_t segment, Layout& layout) const;
    bool RecomputeValue(ir::ValueId value, uint32_t segment, Layout& layout, uint32_t depth) const;

    const ir::Kernel& kernel_;
    const EmitOptions& options_;
    const ShapeAnalysis& shapes_;
    const Regions& regions_;
    const std::vector<bool>& workgroup_level_;
    std::map<uint32_t, std::shared_ptr<const ShapeAnalysis>> analyses_;  // by width
    std::map<uint32_t, Layout> layouts_;
};

}  // namespace fornax::kernel
