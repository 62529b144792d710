#include "compiler/kernel/codegen/region_lane_maps.h"

#include <algorithm>

#include "compiler/kernel/access/lane_layout.h"
#include "compiler/kernel/codegen/lane_map.h"

namespace fornax::kernel {

using ir::Op;
using Storage = BarrierRegions::Storage;

namespace {

// A region cheaper than this an invocation, in vector operations, has no access lane by lane.
constexpr double kCheapRegion = 1;
// Rows turned into columns cost shuffles that the estimate does not count.
constexpr double kWorthAnotherWidth = 0.6;
constexpr size_t kMaxRecomputed = 24;
constexpr uint32_t kRecomputeDepth = 12;
// Every width that is tried costs an analysis of the kernel.
constexpr uint32_t kMaxInstructions = 4000;

}  // namespace

RegionLaneMaps::RegionLaneMaps(const ir::Kernel& kernel,
                               const EmitOptions& options,
                               const LaneAnalysis& patterns,
                               const BarrierRegions& regions,
                               const std::vector<bool>& workgroup_level)
    : kernel_(kernel),
      options_(options),
      patterns_(patterns),
      regions_(regions),
      workgroup_level_(workgroup_level) {
    if (regions.num_regions() < 2 || regions.keeps_mask() || patterns.map().workgroups != 1 ||
        patterns.map().tile_width != 0 || kernel.num_insts() > kMaxInstructions ||
        SeesSubgroups(kernel)) {
        return;
    }
    for (uint32_t i = 0; i < regions.num_regions(); ++i) {
        if (MayDiffer(regions.region(i))) {
            Choose(i);
        }
    }
}

bool RegionLaneMaps::MayDiffer(const BarrierRegion& region) const {
    return std::all_of(region.items.begin(), region.items.end(), [&](const RegionItem& item) {
        switch (item.kind) {
            case RegionItem::Kind::kInstruction:
                return TreeMayDiffer(item.inst);
            case RegionItem::Kind::kCondition:
                return true;
            case RegionItem::Kind::kTransfer:
                break;
        }
        return false;
    });
}

// Nothing that is kept a vector: values across regions, private memory.
bool RegionLaneMaps::TreeMayDiffer(ir::InstId id) const {
    const ir::Instruction& inst = kernel_.inst(id);
    if (inst.op == Op::kLoadLocal || inst.op == Op::kStoreLocal || inst.op == Op::kReturn) {
        return false;
    }
    for (ir::ValueId result : inst.results) {
        if (regions_.storage(result) == Storage::kSubgroupSlot) {
            return false;
        }
    }
    return std::all_of(inst.blocks.begin(), inst.blocks.end(), [&](ir::BlockId block) {
        const std::vector<ir::InstId>& insts = kernel_.block(block).insts;
        return std::all_of(insts.begin(), insts.end(),
                           [&](ir::InstId child) { return TreeMayDiffer(child); });
    });
}

std::shared_ptr<const LaneAnalysis> RegionLaneMaps::Analyse(uint32_t lanes) {
    std::shared_ptr<const LaneAnalysis>& analysis = analyses_[lanes];
    if (!analysis) {
        analysis = std::make_shared<LaneAnalysis>(kernel_, lanes, workgroup_level_);
    }
    return analysis;
}

void RegionLaneMaps::Choose(uint32_t index) {
    const BarrierRegion& region = regions_.region(index);
    const uint32_t vector_bytes = options_.vector_bits / 8;
    const double own_cost = EstimateMemoryCost(kernel_, patterns_, vector_bytes, region);
    if (own_cost < kCheapRegion) {
        return;
    }
    double best_cost = own_cost * kWorthAnotherWidth;
    const auto& size = kernel_.workgroup_size;
    const uint32_t invocations = size[0] * size[1] * size[2];
    for (uint32_t lanes = patterns_.lanes() * 2; lanes <= kMaxLanes; lanes *= 2) {
        if (invocations % lanes != 0) {
            break;
        }
        Layout layout;
        layout.patterns = Analyse(lanes);
        const double cost = EstimateMemoryCost(kernel_, *layout.patterns, vector_bytes, region);
        if (cost < best_cost && Recompute(index, layout)) {
            best_cost = cost;
            layouts_[index] = std::move(layout);
        }
    }
}

bool RegionLaneMaps::Recompute(uint32_t region, Layout& layout) const {
    const std::vector<RegionItem>& items = regions_.region(region).items;
    return std::all_of(items.begin(), items.end(), [&](const RegionItem& item) {
        if (item.kind == RegionItem::Kind::kInstruction) {
            return RecomputeTree(item.inst, region, layout);
        }
        const std::vector<ir::ValueId>& operands = kernel_.inst(item.inst).operands;
        return std::all_of(operands.begin(), operands.end(), [&](ir::ValueId operand) {
            return RecomputeValue(operand, region, layout, 0);
        });
    });
}

bool RegionLaneMaps::RecomputeTree(ir::InstId id, uint32_t region, Layout& layout) const {
    const ir::Instruction& inst = kernel_.inst(id);
    for (ir::ValueId operand : inst.operands) {
        if (!RecomputeValue(operand, region, layout, 0)) {
            return false;
        }
    }
    for (ir::ValueId result : inst.results) {
        // Both maps have to hold what other regions take from here in the same form.
        if (regions_.storage(result) == Storage::kWorkgroupSlot &&
            (!patterns_.pattern(result).uniform() || !layout.patterns->pattern(result).uniform())) {
            return false;
        }
    }
    for (ir::BlockId block : inst.blocks) {
        for (ir::InstId child : kernel_.block(block).insts) {
            if (!RecomputeTree(child, region, layout)) {
                return false;
            }
        }
    }
    return true;
}

bool RegionLaneMaps::RecomputeValue(ir::ValueId value,
                                    uint32_t region,
                                    Layout& layout,
                                    uint32_t depth) const {
    if (regions_.region_of(value) == region) {
        return true;
    }
    const LanePattern& pattern = layout.patterns->pattern(value);
    if (pattern.has_rows() && !RecomputeValue(pattern.stride, region, layout, depth + 1)) {
        return false;
    }
    const Storage storage = regions_.storage(value);
    const bool one = storage == Storage::kWorkgroup || storage == Storage::kWorkgroupSlot;
    if (one && patterns_.pattern(value).uniform()) {
        return pattern.uniform();
    }
    if (std::find(layout.recomputed.begin(), layout.recomputed.end(), value) !=
        layout.recomputed.end()) {
        return true;
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    if (!inst || depth > kRecomputeDepth || layout.recomputed.size() >= kMaxRecomputed ||
        inst->results.size() != 1 || !ir::HasProperty(inst->op, ir::kPure)) {
        return false;
    }
    for (ir::ValueId operand : inst->operands) {
        if (!RecomputeValue(operand, region, layout, depth + 1)) {
            return false;
        }
    }
    layout.recomputed.push_back(value);
    return true;
}

}  // namespace fornax::kernel
