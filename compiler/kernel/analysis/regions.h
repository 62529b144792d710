// Barrier regions: which control flow belongs to the workgroup, and what lives across barriers.
//
// A construct that holds a barrier, or an exit to such a construct, is run once for the workgroup.
// What lies between is cut into segments: each runs for one subgroup after the other, from its
// first instruction to its last. A kernel without barriers is one segment. Values that are one for
// the workgroup are computed outside the segments; others that live from one segment to another are
// recomputed where that is cheap and kept in memory, per subgroup, where it is not.
#pragma once

#include <vector>

#include "compiler/kernel/analysis/shapes.h"

namespace fornax::kernel {

// By instruction: constructs that are run by the workgroup as a whole.
std::vector<bool> FindWorkgroupLevel(const ir::Kernel& kernel);

struct SegmentItem {
    enum class Kind : uint8_t {
        kInstruction,
        kCondition,  // keeps the condition of workgroup-level construct `inst` for its branch
        kTransfer,   // writes the operands of terminator or loop `inst` to what they become
    };
    Kind kind = Kind::kInstruction;
    ir::InstId inst;
    uint32_t imports_end = 0;  // of the segment's imports, those that it or an item before uses
};

struct Segment {
    std::vector<SegmentItem> items;
    std::vector<ir::ValueId> imports;  // values of other segments that it uses, by item; may repeat
    bool returns = false;              // invocations may end in it
};

struct Step {
    enum class Kind : uint8_t {
        kHoisted,     // a pure instruction, emitted once for the workgroup
        kSegment,     // `segment`, for every subgroup in turn
        kConstruct,   // a workgroup-level construct
        kTerminator,  // of a workgroup-level block
    };
    Kind kind = Kind::kHoisted;
    ir::InstId inst;
    uint32_t segment = 0;
};

class Regions {
  public:
    enum class Storage : uint8_t {
        kSegment,        // lives inside one segment
        kWorkgroup,      // a scalar outside the segments
        kRecomputed,     // emitted anew in each segment that uses it
        kWorkgroupSlot,  // a scalar made in one segment and used in others
        kSubgroupSlot,   // kept in memory for each subgroup
    };

    Regions(const ir::Kernel& kernel,
            const ShapeAnalysis& shapes,
            const std::vector<bool>& workgroup_level);

    const std::vector<Step>& steps(ir::BlockId workgroup_block) const {
        return steps_[workgroup_block.index];
    }
    const Segment& segment(uint32_t index) const { return segments_[index]; }
    uint32_t num_segments() const { return static_cast<uint32_t>(segments_.size()); }
    Storage storage(ir::ValueId value) const { return storages_[value.index]; }
    // The segment that defines the value, UINT32_MAX if none does.
    uint32_t segment_of(ir::ValueId value) const { return segment_of_[value.index]; }
    // Invocations may return in one segment while later ones run: the mask lives across segments.
    bool keeps_mask() const { return keeps_mask_; }

  private:
    void PlanBlock(ir::BlockId block);
    bool Hoistable(const ir::Instruction& inst) const;
    void DefineTree(ir::InstId id, uint32_t segment);
    void UseTree(ir::InstId id, uint32_t segment);
    void Use(ir::ValueId value, uint32_t segment);
    uint32_t RecomputeCost(ir::ValueId value, uint32_t depth) const;
    void KeepOperandsOfRecomputed(ir::ValueId value, uint32_t segment);

    const ir::Kernel& kernel_;
    const ShapeAnalysis& shapes_;
    const std::vector<bool>& workgroup_level_;
    std::vector<std::vector<Step>> steps_;
    std::vector<Segment> segments_;
    std::vector<Storage> storages_;
    std::vector<uint32_t> segment_of_;
    bool keeps_mask_ = false;
    bool returns_inside_ = false;
};

}  // namespace fornax::kernel
