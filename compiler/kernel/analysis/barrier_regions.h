// Barrier regions: which control flow belongs to the workgroup, and what lives across barriers.
//
// A construct that holds a barrier, or an exit to such a construct, is run once for the workgroup.
// What lies between is cut into barrier regions: each runs for one subgroup after the other, from
// its first instruction to its last. A kernel without barriers is one region. Values that are one
// for the workgroup are computed outside the regions; others that live from one region to another
// are recomputed where that is cheap and kept in memory, per subgroup, where it is not.
#pragma once

#include <vector>

#include "compiler/kernel/analysis/lane_patterns.h"

namespace fornax::kernel {

// By instruction: constructs that are run by the workgroup as a whole.
std::vector<bool> FindWorkgroupLevel(const ir::Kernel& kernel);

struct RegionItem {
    enum class Kind : uint8_t {
        kInstruction,
        kCondition,  // keeps the condition of workgroup-level construct `inst` for its branch
        kTransfer,   // writes the operands of terminator or loop `inst` to what they become
    };
    Kind kind = Kind::kInstruction;
    ir::InstId inst;
    uint32_t imports_end = 0;  // of the region's imports, those that it or an item before uses
};

struct BarrierRegion {
    std::vector<RegionItem> items;
    std::vector<ir::ValueId> imports;  // values of other regions that it uses, by item; may repeat
    bool returns = false;              // invocations may end in it
};

struct Step {
    enum class Kind : uint8_t {
        kHoisted,     // a pure instruction, emitted once for the workgroup
        kRegion,      // `region`, for every subgroup in turn
        kConstruct,   // a workgroup-level construct
        kTerminator,  // of a workgroup-level block
    };
    Kind kind = Kind::kHoisted;
    ir::InstId inst;
    uint32_t region = 0;
};

class BarrierRegions {
  public:
    enum class Storage : uint8_t {
        kRegion,         // lives inside one region
        kWorkgroup,      // a scalar outside the regions
        kRecomputed,     // emitted anew in each region that uses it
        kWorkgroupSlot,  // a scalar made in one region and used in others
        kSubgroupSlot,   // kept in memory for each subgroup
    };

    BarrierRegions(const ir::Kernel& kernel,
                   const LaneAnalysis& patterns,
                   const std::vector<bool>& workgroup_level);

    const std::vector<Step>& steps(ir::BlockId workgroup_block) const {
        return steps_[workgroup_block.value()];
    }
    const BarrierRegion& region(uint32_t index) const { return regions_[index]; }
    uint32_t num_regions() const { return static_cast<uint32_t>(regions_.size()); }
    Storage storage(ir::ValueId value) const { return storages_[value.value()]; }
    // The region that defines the value, UINT32_MAX if none does.
    uint32_t region_of(ir::ValueId value) const { return region_of_[value.value()]; }
    // Invocations may return in one region while later ones run: the mask lives across regions.
    bool keeps_mask() const { return keeps_mask_; }

  private:
    void PlanBlock(ir::BlockId block);
    bool Hoistable(const ir::Instruction& inst) const;
    void DefineTree(ir::InstId id, uint32_t region);
    void UseTree(ir::InstId id, uint32_t region);
    void Use(ir::ValueId value, uint32_t region);
    uint32_t RecomputeCost(ir::ValueId value, uint32_t depth) const;
    void KeepOperandsOfRecomputed(ir::ValueId value, uint32_t region);

    const ir::Kernel& kernel_;
    const LaneAnalysis& patterns_;
    const std::vector<bool>& workgroup_level_;
    std::vector<std::vector<Step>> steps_;
    std::vector<BarrierRegion> regions_;
    std::vector<Storage> storages_;
    std::vector<uint32_t> region_of_;
    bool keeps_mask_ = false;
    bool returns_inside_ = false;
};

}  // namespace fornax::kernel
