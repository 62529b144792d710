// The walk that finds uniformity, patterns and divergence: repeated over the kernel's tree until
// nothing changes. Optimistic: a loop's parameter starts with the pattern of its initial value.
#include "compiler/kernel/analysis/lane_patterns.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "compiler/kernel/ir/group.h"

namespace fornax::kernel {

using ir::Op;
using lane_patterns::TypeMax;

namespace {

constexpr uint8_t kWidenAfter = 3;

// Operations between lanes are those of subgroups, whatever the width of the analysis.
bool IsOneSubgroup(const ir::Kernel& kernel) {
    const auto& size = kernel.workgroup_size;
    return uint64_t{size[0]} * size[1] * size[2] <= kernel.subgroup_size;
}

}  // namespace

LaneAnalysis::LaneAnalysis(const ir::Kernel& kernel,
                           const LaneMap& map,
                           std::vector<bool> workgroup_level)
    : kernel_(kernel),
      map_(map),
      lanes_(map.lanes),
      workgroup_level_(std::move(workgroup_level)),
      patterns_(kernel.num_values()),
      facts_(kernel.num_insts()),
      branch_(kernel.num_insts(), false),
      max_updates_(kernel.num_values(), 0),
      place_(kernel.num_insts(), 0) {
    const auto& size = kernel.workgroup_size;
    single_vector_ = uint64_t{size[0]} * size[1] * size[2] <= lanes_;
    do {
        changed_ = false;
        next_place_ = 0;
        for (ConstructFacts& facts : facts_) {
            facts.continue_sites = 0;
        }
        int divergence = -1;
        VisitBlock(kernel.body, 0, divergence);
    } while (changed_);
    for (uint32_t i = 0; i < kernel.num_values(); ++i) {
        if (patterns_[i].kind == LanePattern::Kind::kUnknown) {
            patterns_[i] = Varying(ir::ValueId{i});
        }
    }
}

void LaneAnalysis::VisitBlock(ir::BlockId block, int depth, int& divergence) {
    for (ir::InstId id : kernel_.block(block).insts) {
        VisitInstruction(id, depth, divergence);
    }
}

void LaneAnalysis::VisitInstruction(ir::InstId id, int depth, int& divergence) {
    const ir::Instruction& inst = kernel_.inst(id);
    place_[id.value()] = next_place_++;
    switch (inst.op) {
        case Op::kIf:
        case Op::kSwitch:
        case Op::kLoop:
        case Op::kScope:
            enclosing_.push_back(id);
            VisitConstruct(id, depth + 1, divergence);
            enclosing_.pop_back();
            return;
        case Op::kYield: {
            ir::InstId parent = enclosing_.back();
            const ConstructFacts& facts = facts_[parent.value()];
            Merge(kernel_.inst(parent).results, inst.operands,
                  facts.divergent || facts.masked_exits);
            return;
        }
        case Op::kNext: {
            const ir::Instruction& loop = kernel_.inst(enclosing_.back());
            Merge(kernel_.block(loop.blocks[0]).params, inst.operands, false);
            return;
        }
        case Op::kExit:
        case Op::kContinue:
        case Op::kReturn:
        case Op::kUnreachable:
            VisitExit(id, divergence);
            return;
        case Op::kLoadBuffer:
        case Op::kLoadGlobal:
        case Op::kLoadShared:
        case Op::kLoadDescriptor:
        case Op::kLoadPush:
        case Op::kLoadConstant:
            UpdateByOperands(inst, /*uniform=*/false);
            return;
        case Op::kBuiltin:
            Update(inst.results[0], BuiltinPattern(static_cast<ir::BuiltinId>(inst.imm)));
            return;
        case Op::kBuffer:
        case Op::kBufferFrom:
        case Op::kBufferSize:
        case Op::kBufferAddress:
            // One descriptor for all lanes, or one a lane.
            UpdateByOperands(inst, /*uniform=*/lanes_ == 1);
            return;
        case Op::kSubgroupBallot:
        case Op::kSubgroupBroadcastFirst:
        case Op::kSubgroupShuffle:
        case Op::kSubgroupReduce:
            if (patterns_[inst.operands.back().value()].kind == LanePattern::Kind::kUnknown) {
                return;
            }
            if (OneForSubgroup(inst)) {
                // The set of lanes is a subgroup's own, even where operands are the workgroup's.
                LanePattern pattern = Uniform(inst.results[0], IsOneSubgroup(kernel_));
                if (inst.op == Op::kSubgroupBallot) {
                    pattern.max = TypeMax(kernel_.subgroup_size);
                }
                Update(inst.results[0], std::move(pattern));
                return;
            }
            break;
        default:
            break;
    }
    if (ir::HasProperty(inst.op, ir::kPure)) {
        if (inst.results.size() != 1) {
            UpdateByOperands(inst, /*uniform=*/inst.op == Op::kLaneRange);
        } else if (AreKnown(inst.operands)) {
            Update(inst.results[0], PurePattern(inst));
        }
        return;
    }
    // Atomics, private memory and other subgroup operations differ by lane.
    for (ir::ValueId result : inst.results) {
        Update(result, lanes_ == 1 ? Uniform(result, single_vector_) : Varying(result));
    }
}

// A subgroup operation gives all lanes that take part one value.
bool LaneAnalysis::OneForSubgroup(const ir::Instruction& inst) const {
    if (lanes_ > kernel_.subgroup_size && !IsOneSubgroup(kernel_)) {
        return false;  // code is never emitted at this width
    }
    switch (inst.op) {
        case Op::kSubgroupShuffle:
            return patterns_[inst.operands[1].value()].uniform();
        case Op::kSubgroupReduce:
            return ir::ClusterSizeOf(inst) == 0 || ir::ClusterSizeOf(inst) == kernel_.subgroup_size;
        default:
            return true;
    }
}

bool LaneAnalysis::AreKnown(std::span<const ir::ValueId> values) const {
    return std::ranges::all_of(values, [&](ir::ValueId value) {
        return patterns_[value.value()].kind != LanePattern::Kind::kUnknown;
    });
}

// All results are one value for all lanes, if `uniform` or because all operands are.
void LaneAnalysis::UpdateByOperands(const ir::Instruction& inst, bool uniform) {
    if (!AreKnown(inst.operands)) {
        return;
    }
    const auto all = [&](auto property) {
        return std::ranges::all_of(inst.operands, [&](ir::ValueId operand) {
            return std::invoke(property, patterns_[operand.value()]);
        });
    };
    const bool workgroup = all(&LanePattern::workgroup);
    uniform |= all(&LanePattern::uniform);
    for (ir::ValueId result : inst.results) {
        Update(result, uniform ? Uniform(result, workgroup) : Varying(result));
    }
}

void LaneAnalysis::VisitConstruct(ir::InstId id, int depth, int& divergence) {
    const ir::Instruction& inst = kernel_.inst(id);
    ConstructFacts& facts = facts_[id.value()];
    facts.depth = static_cast<uint32_t>(depth);
    int entry_divergence = divergence;
    if (inst.op == Op::kLoop) {
        Merge(kernel_.block(inst.blocks[0]).params, inst.operands, false);
        int inside = entry_divergence;
        if (facts.divergent) {
            inside = std::max(inside, depth - 1);
        }
        VisitBlock(inst.blocks[0], depth, inside);
        inside = entry_divergence;
        if (facts.divergent) {
            inside = std::max(inside, depth);
        }
        VisitBlock(inst.blocks[1], depth, inside);
    } else {
        if (inst.op != Op::kScope && !workgroup_level_[id.value()]) {
            const LanePattern& condition = patterns_[inst.operands[0].value()];
            bool divergent = condition.kind != LanePattern::Kind::kUnknown && !condition.uniform();
            if (divergent) {
                Learn(facts.divergent);
            }
        }
        for (ir::BlockId block : inst.blocks) {
            int inside = facts.divergent ? std::max(entry_divergence, depth) : entry_divergence;
            VisitBlock(block, depth, inside);
        }
    }
    divergence = facts.loses_lanes ? std::max(entry_divergence, depth - 1) : entry_divergence;
}

void LaneAnalysis::VisitExit(ir::InstId id, int divergence) {
    const ir::Instruction& inst = kernel_.inst(id);
    bool is_return = inst.op == Op::kReturn || inst.op == Op::kUnreachable;
    int target_depth = is_return ? 0 : static_cast<int>(facts_[inst.target.value()].depth);
    bool to_workgroup_level = !is_return && workgroup_level_[inst.target.value()];
    bool branch = divergence < target_depth || to_workgroup_level;
    branch_[id.value()] = branch;

    if (inst.op == Op::kContinue) {
        ConstructFacts& loop = facts_[inst.target.value()];
        ++loop.continue_sites;
        bool at_end = enclosing_.back() == inst.target;
        if (!branch && !at_end) {
            Learn(loop.masked_continues);
            for (ir::InstId construct : enclosing_) {
                ConstructFacts& facts = facts_[construct.value()];
                if (static_cast<int>(facts.depth) > target_depth) {
                    Learn(facts.loses_lanes);
                }
            }
        }
        const ir::Instruction& target = kernel_.inst(inst.target);
        Merge(kernel_.block(target.blocks[1]).params, inst.operands,
              loop.masked_continues && loop.continue_sites > 1);
        return;
    }

    if (!branch) {
        for (ir::InstId construct : enclosing_) {
            ConstructFacts& facts = facts_[construct.value()];
            int depth = static_cast<int>(facts.depth);
            bool is_loop = kernel_.inst(construct).op == Op::kLoop;
            if (depth > target_depth) {
                Learn(facts.loses_lanes);
            }
            if (is_loop && depth >= target_depth && !workgroup_level_[construct.value()]) {
                Learn(facts.divergent);
            }
        }
    }
    if (inst.op == Op::kExit) {
        ConstructFacts& target = facts_[inst.target.value()];
        if (!branch) {
            Learn(target.masked_exits);
        }
        Merge(kernel_.inst(inst.target).results, inst.operands,
              target.divergent || target.masked_exits);
    }
}

void LaneAnalysis::Merge(std::span<const ir::ValueId> into,
                         std::span<const ir::ValueId> from,
                         bool divergent) {
    for (size_t i = 0; i < into.size(); ++i) {
        const LanePattern& source = patterns_[from[i].value()];
        if (source.kind == LanePattern::Kind::kUnknown) {
            continue;
        }
        const LanePattern& old = patterns_[into[i].value()];
        LanePattern joined = source;
        ir::InstId construct = kernel_.value(into[i]).inst;
        bool is_result = construct.valid();
        if (!is_result) {
            construct = kernel_.block(kernel_.value(into[i]).block).parent;
        }
        // Without a barrier inside, subgroups take a construct one after another: what it gives is
        // one value for the workgroup only where its control is.
        if (!workgroup_level_[construct.value()] && !single_vector_) {
            joined.workgroup = false;
        }
        if (old.kind != LanePattern::Kind::kUnknown) {
            joined.workgroup &= old.workgroup;
            joined.base_zeros = std::min(source.base_zeros, old.base_zeros);
            joined.max = std::max(source.max, old.max);
            if (!source.SameLanes(old)) {
                joined.kind = LanePattern::Kind::kVarying;
            }
        }
        if (divergent && lanes_ > 1) {
            joined.kind = LanePattern::Kind::kVarying;
        }
        // A stride from inside is not visible outside, and another one in the next iteration.
        if (joined.has_rows() && !DefinedBefore(joined.stride, construct)) {
            joined.kind = LanePattern::Kind::kVarying;
        }
        if (joined.varying()) {
            joined = {.kind = LanePattern::Kind::kVarying, .max = joined.max};
        }
        Update(into[i], std::move(joined));
    }
}

bool LaneAnalysis::DefinedBefore(ir::ValueId id, ir::InstId construct) const {
    const ir::Value& value = kernel_.value(id);
    const ir::InstId at = value.inst.valid() ? value.inst : kernel_.block(value.block).parent;
    return place_[at.value()] < place_[construct.value()];
}

void LaneAnalysis::Update(ir::ValueId value, LanePattern pattern) {
    LanePattern& old = patterns_[value.value()];
    if (pattern.kind < old.kind) {
        pattern = Varying(value);  // facts only ever get weaker
    }
    if (pattern.varying() && old.varying() && pattern.groups != old.groups) {
        pattern.groups.clear();  // likewise
    }
    pattern.max = std::min(pattern.max, MaxOf(value));
    if (old.kind != LanePattern::Kind::kUnknown && pattern.max > old.max &&
        ++max_updates_[value.value()] > kWidenAfter) {
        pattern.max = MaxOf(value);
    }
    if (pattern == old) {
        return;
    }
    old = std::move(pattern);
    changed_ = true;
}

uint64_t LaneAnalysis::MaxOf(ir::ValueId value) const {
    const ir::Type type = kernel_.type(value);
    return ir::IsInteger(type) ? TypeMax(ir::BitWidth(type)) : UINT64_MAX;
}

}  // namespace fornax::kernel
