// The shapes that the emitter goes by, which differ between segments (segment_layouts.h).
#pragma once

#include "compiler/kernel/analysis/shapes.h"

namespace fornax::kernel {

// The shapes under the lane map of the current segment.
class CurrentShapes {
  public:
    explicit CurrentShapes(const ShapeAnalysis& shapes) : shapes_(&shapes) {}

    const ShapeAnalysis& get() const { return *shapes_; }
    const Shape& shape(ir::ValueId value) const { return shapes_->shape(value); }
    const ConstructFacts& facts(ir::InstId construct) const { return shapes_->facts(construct); }
    bool IsBranch(ir::InstId exit) const { return shapes_->IsBranch(exit); }
    uint32_t lanes() const { return shapes_->lanes(); }
    const LaneMap& map() const { return shapes_->map(); }
    bool single_vector() const { return shapes_->single_vector(); }

  private:
    const ShapeAnalysis* shapes_;
};

}  // namespace fornax::kernel
