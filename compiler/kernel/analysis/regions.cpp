// Cutting a kernel into regions at its barriers, and finding a place for each value.
#include "compiler/kernel/analysis/regions.h"

#include <algorithm>

namespace fornax::kernel {

using ir::Op;

namespace {

constexpr uint32_t kNoSegment = UINT32_MAX;
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
            level[id.index] = true;
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
        if ((inst.op == Op::kExit || inst.op == Op::kContinue) && level[inst.target.index]) {
            found = true;
        }
        bool inside = false;
        for (ir::BlockId child : inst.blocks) {
            inside |= MarkExits(kernel, child, level, changed);
        }
        if (inside && !level[id.index]) {
            level[id.index] = true;
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

Regions::Regions(const ir::Kernel& kernel,
                 const ShapeAnalysis& shapes,
                 const std::vector<bool>& workgroup_level)
    : kernel_(kernel),
      shapes_(shapes),
      workgroup_level_(workgroup_level),
      steps_(kernel.num_blocks()),
      storages_(kernel.num_values(), Storage::kSegment),
      segment_of_(kernel.num_values(), kNoSegment) {
    PlanBlock(kernel.body);
    for (uint32_t i = 0; i < segments_.size(); ++i) {
        for (SegmentItem& item : segments_[i].items) {
            if (item.kind == SegmentItem::Kind::kInstruction) {
                UseTree(item.inst, i);
            } else {
                for (ir::ValueId operand : kernel_.inst(item.inst).operands) {
                    Use(operand, i);
                }
            }
            item.imports_end = static_cast<uint32_t>(segments_[i].imports.size());
        }
    }
    keeps_mask_ = segments_.size() > 1 && returns_inside_;
}

bool Regions::Hoistable(const ir::Instruction& inst) const {
    if (!(ir::InfoOf(inst.op).properties & ir::kPure)) {
        return false;
    }
    for (ir::ValueId result : inst.results) {
        const Shape& shape = shapes_.shape(result);
        if (!shape.scalar() || !shape.workgroup) {
            return false;
        }
    }
    return std::all_of(inst.operands.begin(), inst.operands.end(), [&](ir::ValueId operand) {
        return storage(operand) == Storage::kWorkgroup;
    });
}

void Regions::PlanBlock(ir::BlockId block) {
    // Steps are built apart because nested blocks are planned meanwhile. A segment stays open until
    // a barrier or a workgroup-level construct; hoisted steps are moved in front of it.
    std::vector<Step> steps;
    bool open = false;
    auto segment = [&]() -> Segment& {
        if (!open) {
            Step step;
            step.kind = Step::Kind::kSegment;
            step.segment = static_cast<uint32_t>(segments_.size());
            steps.push_back(step);
            segments_.emplace_back();
            open = true;
        }
        return segments_.back();
    };
    auto storage_of_merged = [&](std::span<const ir::ValueId> values) {
        for (ir::ValueId value : values) {
            const Shape& shape = shapes_.shape(value);
            storages_[value.index] =
                shape.scalar() && shape.workgroup ? Storage::kWorkgroup : Storage::kSubgroupSlot;
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
        if (workgroup_level_[id.index]) {
            if (inst.op == Op::kLoop) {
                storage_of_merged(kernel_.block(inst.blocks[0]).params);
                storage_of_merged(kernel_.block(inst.blocks[1]).params);
                if (!all_workgroup(inst.operands) ||
                    !all_workgroup(kernel_.block(inst.blocks[0]).params)) {
                    segment().items.push_back({SegmentItem::Kind::kTransfer, id});
                }
            } else if (inst.op != Op::kScope && !all_workgroup(inst.operands)) {
                segment().items.push_back({SegmentItem::Kind::kCondition, id});
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
                    segment().items.push_back({SegmentItem::Kind::kTransfer, id});
                }
            }
            steps.push_back({Step::Kind::kTerminator, id, 0});
            continue;
        }
        if (Hoistable(inst)) {
            for (ir::ValueId result : inst.results) {
                storages_[result.index] = Storage::kWorkgroup;
            }
            Step step{Step::Kind::kHoisted, id, 0};
            if (open) {
                steps.insert(steps.end() - 1, step);
            } else {
                steps.push_back(step);
            }
            continue;
        }
        segment().items.push_back({SegmentItem::Kind::kInstruction, id});
        DefineTree(id, static_cast<uint32_t>(segments_.size() - 1));
    }
    steps_[block.index] = std::move(steps);
}

void Regions::DefineTree(ir::InstId id, uint32_t segment) {
    const ir::Instruction& inst = kernel_.inst(id);
    if (inst.op == Op::kReturn || inst.op == Op::kUnreachable) {
        returns_inside_ = segments_[segment].returns = true;
    }
    for (ir::ValueId result : inst.results) {
        segment_of_[result.index] = segment;
    }
    for (ir::BlockId block : inst.blocks) {
        for (ir::ValueId param : kernel_.block(block).params) {
            segment_of_[param.index] = segment;
        }
        for (ir::InstId child : kernel_.block(block).insts) {
            DefineTree(child, segment);
        }
    }
}

void Regions::UseTree(ir::InstId id, uint32_t segment) {
    const ir::Instruction& inst = kernel_.inst(id);
    for (ir::ValueId operand : inst.operands) {
        Use(operand, segment);
    }
    for (ir::BlockId block : inst.blocks) {
        for (ir::InstId child : kernel_.block(block).insts) {
            UseTree(child, segment);
        }
    }
}

void Regions::Use(ir::ValueId value, uint32_t segment) {
    // Whoever looks at the lanes needs the stride beside the base.
    if (shapes_.shape(value).has_rows()) {
        Use(shapes_.shape(value).stride, segment);
    }
    Storage& storage = storages_[value.index];
    if (storage == Storage::kWorkgroup || segment_of_[value.index] == segment) {
        return;
    }
    segments_[segment].imports.push_back(value);
    if (storage != Storage::kSegment) {
        return;
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    if (inst && (inst->op == Op::kBuffer || inst->op == Op::kBufferFrom)) {
        // A descriptor is looked up again: only what it is made of needs a place.
        storage = Storage::kRecomputed;
        for (ir::ValueId operand : inst->operands) {
            Use(operand, segment);
        }
        return;
    }
    if (RecomputeCost(value, 0) <= kRecomputeBudget) {
        storage = Storage::kRecomputed;
        // Everything it is made of is recomputed with it.
        KeepOperandsOfRecomputed(value, segment);
        return;
    }
    const Shape& shape = shapes_.shape(value);
    storage = shape.scalar() && shape.workgroup ? Storage::kWorkgroupSlot : Storage::kSubgroupSlot;
}

void Regions::KeepOperandsOfRecomputed(ir::ValueId value, uint32_t segment) {
    const ir::Instruction* inst = kernel_.Definition(value);
    for (ir::ValueId operand : inst->operands) {
        if (shapes_.shape(operand).has_rows()) {
            Use(shapes_.shape(operand).stride, segment);
        }
        if (storages_[operand.index] != Storage::kSegment) {
            continue;
        }
        storages_[operand.index] = Storage::kRecomputed;
        KeepOperandsOfRecomputed(operand, segment);
    }
}

uint32_t Regions::RecomputeCost(ir::ValueId value, uint32_t depth) const {
    if (storages_[value.index] == Storage::kWorkgroup ||
        storages_[value.index] == Storage::kSubgroupSlot ||
        storages_[value.index] == Storage::kWorkgroupSlot) {
        return 0;
    }
    const ir::Instruction* inst = kernel_.Definition(value);
    if (depth > kRecomputeDepth || !inst || inst->results.size() != 1 ||
        !(ir::InfoOf(inst->op).properties & ir::kPure) || inst->op == Op::kBuffer ||
        inst->op == Op::kBufferFrom) {
        return kNever;
    }
    uint32_t cost = shapes_.shape(value).scalar() ? 1 : 4;
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
