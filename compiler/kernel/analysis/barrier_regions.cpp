// Cutting a kernel into regions at its barriers, and finding a place for each value.
#include "compiler/kernel/analysis/barrier_regions.h"

#include <algorithm>

namespace fornax::kernel {

using ir::Op;

namespace {

constexpr uint32_t kNoRegion = UINT32_MAX;
constexpr uint32_t kNever = 1000;
// A value is recomputed rather than kept if that takes at most this many vector operations; scalar
// ones count a quarter.
constexpr uint32_t kRecomputeBudget = 4 * 4;
constexpr uint32_t kRecomputeDepth = 12;

bool MarkBarriers(const ir::Kernel& kernel, ir::BlockId block, std::vector<bool>& level) {
    bool found = false;
    for (ir::InstId id : kernel.block(block).insts) {
        const ir::Instruction& inst = kernel.inst(id);
        if (inst.op == Op::kBarrier) {
            found = true;
        }
        bool inside = false;
        for (ir::BlockId child : inst.blocks) {
            inside |= MarkBarriers(kernel, child, level);
        }
        if (inside) {
            level[id.value()] = true;
            found = true;
        }
    }
    return found;
}

bool MarkExits(const ir::Kernel& kernel,
               ir::BlockId block,
               std::vector<bool>& level,
               bool& changed) {
    bool found = false;
    for (ir::InstId id : kernel.block(block).insts) {
        const ir::Instruction& inst = kernel.inst(id);
        if ((inst.op == Op::kExit || inst.op == Op::kContinue) && level[inst.target.value()]) {
            found = true;
        }
        bool inside = false;
        for (ir::BlockId child : inst.blocks) {
            inside |= MarkExits(kernel, child, level, changed);
        }
        if (inside && !level[id.value()]) {
            level[id.value()] = true;
            changed = true;
        }
        found |= inside;
    }
    return found;
}

}  // namespace

std::vector<bool> FindWorkgroupLevel(const ir::Kernel& kernel) {
    std::vector<bool> level(kernel.num_insts(), false);
    if (!MarkBarriers(kernel, kernel.body, level)) {
        return level;
    }
    bool changed = true;
    while (changed) {
        changed = false;
        MarkExits(kernel, kernel.body, level, changed);
    }
    return level;
}

BarrierRegions::BarrierRegions(const ir::Kernel& kernel,
                               const LaneAnalysis& patterns,
                               const std::vector<bool>& workgroup_level)
    : kernel_(kernel),
      patterns_(patterns),
      workgroup_level_(workgroup_level),
      steps_(kernel.num_blocks()),
      storages_(kernel.num_values(), Storage::kRegion),
      region_of_(kernel.num_values(), kNoRegion) {
    PlanBlock(kernel.body);
    for (uint32_t i = 0; i < regions_.size(); ++i) {
        for (RegionItem& item : regions_[i].items) {
            if (item.kind == RegionItem::Kind::kInstruction) {
                UseTree(item.inst, i);
            } else {
                for (ir::ValueId operand : kernel_.inst(item.inst).operands) {
                    Use(operand, i);
                }
            }
            item.imports_end = static_cast<uint32_t>(regions_[i].imports.size());
        }
    }
    keeps_mask_ = regions_.size() > 1 && returns_inside_;
}

bool BarrierRegions::Hoistable(const ir::Instruction& inst) const {
    if (!(ir::InfoOf(inst.op).properties & ir::kPure)) {
        return false;
    }
    for (ir::ValueId result : inst.results) {
        const LanePattern& pattern = patterns_.pattern(result);
        if (!pattern.scalar() || !pattern.workgroup) {
            return false;
        }
    }
    return std::all_of(inst.operands.begin(), inst.operands.end(), [&](ir::ValueId operand) {
        return storage(operand) == Storage::kWorkgroup;
    });
}

void BarrierRegions::PlanBlock(ir::BlockId block) {
    // Steps are built apart because nested blocks are planned meanwhile. A region stays open until
    // a barrier or a workgroup-level construct; hoisted steps are moved in front of it.
    std::vector<Step> steps;
    bool open = false;
    auto region = [&]() -> BarrierRegion& {
        if (!open) {
            Step step;
            step.kind = Step::Kind::kRegion;
            step.region = static_cast<uint32_t>(regions_.size());
            steps.push_back(step);
            regions_.emplace_back();
            open = true;
        }
        return regions_.back();
    };
    auto storage_of_merged = [&](std::span<const ir::ValueId> values) {
        for (ir::ValueId value : values) {
            const LanePattern& pattern = patterns_.pattern(value);
            storages_[value.value()] = pattern.scalar() && pattern.workgroup
                                           ? Storage::kWorkgroup
                                           : Storage::kSubgroupSlot;
        }
    };
    auto all_workgroup = [&](std::span<const ir::ValueId> values) {
        return std::all_of(values.begin(), values.end(), [&](ir::ValueId value) {
            return storage(value) == Storage::kWorkgroup;
        });
    };
    for (ir::InstId id : kernel_.block(block).insts) {
        const ir::Instruction& inst = kernel_.inst(id);
        if (inst.op == Op::kBarrier) {
            open = false;
            continue;
        }
        if (workgroup_level_[id.value()]) {
            if (inst.op == Op::kLoop) {
                storage_of_merged(kernel_.block(inst.blocks[0]).params);
                storage_of_merged(kernel_.block(inst.blocks[1]).params);
                if (!all_workgroup(inst.operands) ||
                    !all_workgroup(kernel_.block(inst.blocks[0]).params)) {
                    region().items.push_back({RegionItem::Kind::kTransfer, id});
                }
            } else if (inst.op != Op::kScope && !all_workgroup(inst.operands)) {
                region().items.push_back({RegionItem::Kind::kCondition, id});
            }
            storage_of_merged(inst.results);
            open = false;
            steps.push_back({Step::Kind::kConstruct, id, 0});
            for (ir::BlockId child : inst.blocks) {
                PlanBlock(child);
            }
            continue;
        }
        if (ir::InfoOf(inst.op).properties & ir::kTerminator) {
            if (!inst.operands.empty()) {
                std::span<const ir::ValueId> into;
                ir::InstId construct = inst.op == Op::kYield || inst.op == Op::kNext
                                           ? kernel_.block(block).parent
                                           : inst.target;
                const ir::Instruction& target = kernel_.inst(construct);
                if (inst.op == Op::kNext) {
                    into = kernel_.block(target.blocks[0]).params;
                } else if (inst.op == Op::kContinue) {
                    into = kernel_.block(target.blocks[1]).params;
                } else {
                    into = target.results;
                }
                if (!all_workgroup(inst.operands) || !all_workgroup(into)) {
                    region().items.push_back({RegionItem::Kind::kTransfer, id});
                }
            }
            steps.push_back({Step::Kind::kTerminator, id, 0});
            continue;
        }
        if (Hoistable(inst)) {
            for (ir::ValueId result : inst.results) {
                storages_[result.value()] = Storage::kWorkgroup;
            }
            Step step{Step::Kind::kHoisted, id, 0};
            if (open) {
                steps.insert(steps.end() - 1, step);
            } else {
                steps.push_back(step);
            }
            continue;
        }
        region().items.push_back({RegionItem::Kind::kInstruction, id});
        DefineTree(id, static_cast<uint32_t>(regions_.size() - 1));
    }
    steps_[block.value()] = std::move(steps);
}

void BarrierRegions::DefineTree(ir::InstId id, uint32_t region) {
    const ir::Instruction& inst = kernel_.inst(id);
    if (inst.op == Op::kReturn || inst.op == Op::kUnreachable) {
        returns_inside_ = regions_[region].returns = true;
    }
    for (ir::ValueId result : inst.results) {
        region_of_[result.value()] = region;
    }
    for (ir::BlockId block : inst.blocks) {
        for (ir::ValueId param : kernel_.block(block).params) {
            region_of_[param.value()] = region;
        }
        for (ir::InstId child : kernel_.block(block).insts) {
            DefineTree(child, region);
        }
    }
}

void BarrierRegions::UseTree(ir::InstId id, uint32_t region) {
    const ir::Instruction& inst = kernel_.inst(id);
    for (ir::ValueId operand : inst.operands) {
        Use(operand, region);
    }
    for (ir::BlockId block : inst.blocks) {
        for (ir::InstId child : kernel_.block(block).insts) {
            UseTree(child, region);
        }
    }
}

void BarrierRegions::Use(ir::ValueId value, uint32_t region) {
    // Whoever looks at the lanes needs the stride beside the base.
    if (patterns_.pattern(value).has_rows()) {
        Use(patterns_.pattern(value).stride, region);
    }
    Storage& storage = storages_[value.value()];
    if (storage == Storage::kWorkgroup || region_of_[value.value()] == region) {
        return;
    }
    regions_[region].imports.push_back(value);
    if (storage != Storage::kRegion) {
        return;
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    if (inst && (inst->op == Op::kBuffer || inst->op == Op::kBufferFrom)) {
        // A descriptor is looked up again: only what it is made of needs a place.
        storage = Storage::kRecomputed;
        for (ir::ValueId operand : inst->operands) {
            Use(operand, region);
        }
        return;
    }
    if (RecomputeCost(value, 0) <= kRecomputeBudget) {
        storage = Storage::kRecomputed;
        // Everything it is made of is recomputed with it.
        KeepOperandsOfRecomputed(value, region);
        return;
    }
    const LanePattern& pattern = patterns_.pattern(value);
    storage =
        pattern.scalar() && pattern.workgroup ? Storage::kWorkgroupSlot : Storage::kSubgroupSlot;
}

void BarrierRegions::KeepOperandsOfRecomputed(ir::ValueId value, uint32_t region) {
    const ir::Instruction* inst = kernel_.Definition(value);
    for (ir::ValueId operand : inst->operands) {
        if (patterns_.pattern(operand).has_rows()) {
            Use(patterns_.pattern(operand).stride, region);
        }
        if (storages_[operand.value()] != Storage::kRegion) {
            continue;
        }
        storages_[operand.value()] = Storage::kRecomputed;
        KeepOperandsOfRecomputed(operand, region);
    }
}

uint32_t BarrierRegions::RecomputeCost(ir::ValueId value, uint32_t depth) const {
    if (storages_[value.value()] == Storage::kWorkgroup ||
        storages_[value.value()] == Storage::kSubgroupSlot ||
        storages_[value.value()] == Storage::kWorkgroupSlot) {
        return 0;
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    if (depth > kRecomputeDepth || !inst || inst->results.size() != 1 ||
        !(ir::InfoOf(inst->op).properties & ir::kPure) || inst->op == Op::kBuffer ||
        inst->op == Op::kBufferFrom) {
        return kNever;
    }
    uint32_t cost = patterns_.pattern(value).scalar() ? 1 : 4;
    switch (inst->op) {
        case Op::kUDiv:
        case Op::kSDiv:
        case Op::kURem:
        case Op::kSRem:
        case Op::kSMod:
            cost *= 4;
            break;
        default:
            // Float functions are long; plain arithmetic is one instruction.
            if (inst->op >= Op::kSqrt && inst->op <= Op::kModf) {
                return kNever;
            }
            break;
    }
    for (ir::ValueId operand : inst->operands) {
        cost += RecomputeCost(operand, depth + 1);
        if (cost > kRecomputeBudget) {
            return kNever;
        }
    }
    return cost;
}

}  // namespace fornax::kernel
