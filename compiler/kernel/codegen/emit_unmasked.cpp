// Code for the usual case that all lanes of a vector do the same at a branch which might divide
// them: a bounds guard that holds for every lane, a loop that no lane has left yet. There nothing
// is masked, blended or checked lane by lane; the general form stands beside it. Comparisons of a
// pattern with a uniform value are decided by its lowest and highest lane, in scalar registers.
#include <algorithm>

#include "compiler/kernel/codegen/emit_control.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/ir/condition_parts.h"

namespace fornax::kernel {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

namespace {

// A pattern below this counts inside of the workgroup: compared with a constant it divides the
// lanes on purpose rather than at an edge.
constexpr uint64_t kInsideWorkgroup = 4096;

}  // namespace

std::vector<ir::ValueId> ControlEmitter::PartsOf(ir::ValueId condition) const {
    return ir::PartsOfCondition(
        kernel_, condition, [&](ir::ValueId value) { return !patterns_.pattern(value).uniform(); });
}

// Values one of which holds exactly if the condition holds.
std::vector<ir::ValueId> ControlEmitter::EitherPartsOf(ir::ValueId condition) const {
    return ir::LeavesOf(kernel_, condition, [&](ir::ValueId value, const ir::Instruction& inst) {
        return inst.op == Op::kOr && !patterns_.pattern(value).uniform();
    });
}

ControlEmitter::LaneTest ControlEmitter::TestLanes(ir::ValueId condition) {
    const std::vector<ir::ValueId> parts = PartsOf(condition);
    LaneTest test = TestPart(parts[0]);
    size_t divided = patterns_.pattern(parts[0]).uniform() ? 0 : 1;
    for (size_t i = 1; i < parts.size() && (test.all || test.some); ++i) {
        const LaneTest part = TestPart(parts[i]);
        divided += patterns_.pattern(parts[i]).uniform() ? 0 : 1;
        // Where two parts divide lanes, it may be that no lane passes both.
        const bool knows_some = test.some && part.some && divided < 2;
        test.all = test.all && part.all ? builder_.CreateAnd(test.all, part.all) : nullptr;
        test.some = knows_some ? builder_.CreateAnd(test.some, part.some) : nullptr;
    }
    return test;
}

ControlEmitter::LaneTest ControlEmitter::TestPart(ir::ValueId condition) {
    LaneTest test;
    if (patterns_.pattern(condition).uniform()) {
        test.all = test.some = values_.Raw(condition);
        return test;
    }
    const ir::Instruction* inst = kernel_.Definition(condition);
    if (!inst) {
        return test;
    }
    const bool is_signed = inst->op == Op::kSLt || inst->op == Op::kSLe;
    if (!is_signed && inst->op != Op::kULt && inst->op != Op::kULe) {
        return test;
    }
    if (kernel_.type(inst->operands[0]) != ir::Type::kI32) {
        return test;
    }
    const bool pattern_is_left = patterns_.pattern(inst->operands[0]).constant_offsets();
    ir::ValueId pattern_id = inst->operands[pattern_is_left ? 0 : 1];
    ir::ValueId bound_id = inst->operands[pattern_is_left ? 1 : 0];
    const LanePattern& pattern = patterns_.pattern(pattern_id);
    if (!pattern.constant_offsets() || !patterns_.pattern(bound_id).uniform()) {
        return test;
    }
    const auto [low, high] = std::minmax_element(pattern.offsets.begin(), pattern.offsets.end());
    if (*low < 0) {
        return test;
    }
    // Lanes may wrap around: 64 bits show which do.
    const bool wraps = !lane_patterns::Disjoint(pattern) || (is_signed && pattern.max > INT32_MAX);
    llvm::Type* i64 = builder_.getInt64Ty();
    auto extend = [&](Value* value) {
        return is_signed ? builder_.CreateSExt(value, i64) : builder_.CreateZExt(value, i64);
    };
    auto lane = [&](int64_t offset) {
        return builder_.CreateAdd(extend(values_.Raw(pattern_id)),
                                  llvm::ConstantInt::get(i64, offset));
    };
    auto holds = [&](int64_t offset) {
        Value* a = pattern_is_left ? lane(offset) : extend(values_.Raw(bound_id));
        Value* b = pattern_is_left ? extend(values_.Raw(bound_id)) : lane(offset);
        const bool or_equal = inst->op == Op::kULe || inst->op == Op::kSLe;
        // Both are below 2^33 in magnitude, so a signed comparison serves both kinds.
        return or_equal ? builder_.CreateICmpSLE(a, b) : builder_.CreateICmpSLT(a, b);
    };
    if (pattern_is_left) {
        // That the highest lane is below a 32-bit bound says that none wrapped.
        test.all = holds(*high);
        if (!wraps) {
            test.some = holds(*low);
        }
    } else if (!wraps) {
        test.all = holds(*low);
        test.some = holds(*high);
    }
    return test;
}

Value* ControlEmitter::AllLanes(ir::ValueId condition) {
    Value* every = nullptr;
    for (ir::ValueId part : PartsOf(condition)) {
        Value* all = TestPart(part).all;
        if (!all) {
            Value* bits = code_.MaskBits(values_.Vector(part));
            all = builder_.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
        }
        every = every ? builder_.CreateAnd(every, all) : all;
    }
    return every;
}

// Compares a position with a bound from outside, with conditions beside it that lanes share.
bool ControlEmitter::IsEdgeTest(ir::ValueId condition) const {
    return AreEdges(condition, PartsOf(condition));
}

bool ControlEmitter::IsOutsideTest(ir::ValueId condition) const {
    return IsEdgeTest(condition) || AreEdges(condition, EitherPartsOf(condition));
}

bool ControlEmitter::AreEdges(ir::ValueId condition, std::span<const ir::ValueId> parts) const {
    return std::ranges::all_of(parts, [&](ir::ValueId part) {
        return (part != condition && patterns_.pattern(part).uniform()) || IsEdge(part);
    });
}

Value* ControlEmitter::AnyOutside(ir::ValueId condition) {
    const std::vector<ir::ValueId> parts = EitherPartsOf(condition);
    Value* any = parts.size() == 1 ? TestLanes(condition).some : TestPart(parts[0]).some;
    for (size_t i = 1; i < parts.size() && any; ++i) {
        Value* some = TestPart(parts[i]).some;
        any = some ? builder_.CreateOr(any, some) : nullptr;
    }
    return any;
}

bool ControlEmitter::IsEdge(ir::ValueId comparison) const {
    const ir::Instruction* inst = kernel_.Definition(comparison);
    if (!inst) {
        return false;
    }
    switch (inst->op) {
        case Op::kULt:
        case Op::kULe:
        case Op::kSLt:
        case Op::kSLe: {
            const LanePattern& a = patterns_.pattern(inst->operands[0]);
            const LanePattern& b = patterns_.pattern(inst->operands[1]);
            const bool left = a.constant_offsets() && b.uniform();
            if (!left && !(a.uniform() && b.constant_offsets())) {
                return false;
            }
            return !kernel_.IsConst(inst->operands[left ? 1 : 0]) ||
                   (left ? a : b).max >= kInsideWorkgroup;
        }
        default:
            return false;
    }
}

uint32_t ControlEmitter::CountInstructions(ir::BlockId block) const {
    uint32_t count = 0;
    for (ir::InstId id : kernel_.block(block).insts) {
        ++count;
        for (ir::BlockId child : kernel_.inst(id).blocks) {
            count += CountInstructions(child);
        }
    }
    return count;
}

// Asks what a loop left over, or a branch behind it that asked the same: lanes do as many
// iterations as each other nearly always, and then have as many left.
bool ControlEmitter::IsLeftOverTest(ir::ValueId condition) const {
    const ir::Instruction* inst = kernel_.Definition(condition);
    if (!inst || inst->operands.size() != 2 || kernel_.type(inst->operands[0]) == ir::Type::kBool) {
        return false;
    }
    auto left_over = [&](ir::ValueId value) {
        const ir::Instruction* from = kernel_.Definition(value);
        return from && !patterns_.pattern(value).uniform() &&
               (from->op == Op::kLoop ||
                (from->op == Op::kIf && IsLeftOverTest(from->operands[0])));
    };
    const ir::ValueId a = inst->operands[0];
    const ir::ValueId b = inst->operands[1];
    return kernel_.type(inst->results[0]) == ir::Type::kBool &&
           ((left_over(a) && patterns_.pattern(b).uniform()) ||
            (left_over(b) && patterns_.pattern(a).uniform()));
}

bool ControlEmitter::WorthAllLanes(const ir::Instruction& branch) const {
    return !code_.mask && code_.lanes > 1 &&
           (IsEdgeTest(branch.operands[0]) || IsLeftOverTest(branch.operands[0])) &&
           NeedsGuard(kernel_.block(branch.blocks[0]).insts) &&
           !NeedsGuard(kernel_.block(branch.blocks[1]).insts) &&
           CountInstructions(branch.blocks[0]) <= kMaxCopiedInstructions;
}

// A loop whose only way for lanes to part is a test at its head: `if (c) yield else exit`, or the
// other way round. Nothing before the test has an effect, so it may be run again.
bool ControlEmitter::FindUnmaskedLoop(ir::InstId id, UnmaskedLoop& unmasked) const {
    const ir::Instruction& loop = kernel_.inst(id);
    if (code_.mask || code_.lanes == 1 || !patterns_.facts(id).divergent) {
        return false;
    }
    std::span<const ir::InstId> body = kernel_.block(loop.blocks[0]).insts;
    std::span<const ir::InstId> continuing = kernel_.block(loop.blocks[1]).insts;
    if (CountInstructions(loop.blocks[0]) + CountInstructions(loop.blocks[1]) >
        kMaxCopiedInstructions) {
        return false;
    }
    size_t at = 0;
    while (at < body.size() && kernel_.inst(body[at]).op != Op::kIf) {
        const ir::Instruction& inst = kernel_.inst(body[at]);
        if ((ir::InfoOf(inst.op).properties & ~(ir::kPure | ir::kReadsMemory)) != 0 ||
            inst.op == Op::kCount || (inst.flags & ir::kVolatile) != 0) {
            return false;
        }
        ++at;
    }
    if (at == body.size()) {
        return false;
    }
    const ir::Instruction& test = kernel_.inst(body[at]);
    auto ends_with = [&](ir::BlockId block, Op op) {
        std::span<const ir::InstId> insts = kernel_.block(block).insts;
        return insts.size() == 1 && kernel_.inst(insts[0]).op == op;
    };
    auto exits = [&](ir::BlockId block) {
        return ends_with(block, Op::kExit) &&
               kernel_.inst(kernel_.block(block).insts[0]).target == id;
    };
    unmasked.test = at;
    unmasked.stays_if = ends_with(test.blocks[0], Op::kYield) && exits(test.blocks[1]);
    if (!unmasked.stays_if && !(exits(test.blocks[0]) && ends_with(test.blocks[1], Op::kYield))) {
        return false;
    }
    auto keeps_lanes = [&](std::span<const ir::InstId> insts, Op end) {
        for (ir::InstId inst : insts) {
            if (kernel_.inst(inst).op == Op::kLoop ||
                (!kernel_.inst(inst).blocks.empty() && patterns_.facts(inst).loses_lanes)) {
                return false;
            }
        }
        return !insts.empty() && kernel_.inst(insts.back()).op == end;
    };
    return keeps_lanes(body.subspan(at + 1), Op::kContinue) &&
           kernel_.inst(body.back()).target == id && keeps_lanes(continuing, Op::kNext);
}

// At the test of an unmasked loop that not all lanes pass: where none does, all leave together.
void ControlEmitter::EmitUnmaskedExit(const UnmaskedLoop& unmasked,
                                      const Construct& loop,
                                      BasicBlock* general) {
    const ir::Instruction& inst = kernel_.inst(loop.inst);
    const ir::Instruction& test = kernel_.inst(kernel_.block(inst.blocks[0]).insts[unmasked.test]);
    const LaneTest lanes = TestLanes(test.operands[0]);
    Value* all_leave = unmasked.stays_if ? lanes.some : lanes.all;
    if (!all_leave || loop.exited) {
        builder_.CreateBr(general);
        return;
    }
    if (unmasked.stays_if) {
        all_leave = builder_.CreateNot(all_leave);
    }
    BasicBlock* together = code_.NewBlock("leave_together");
    code_.EmitMaybe(all_leave, together, general, true);
    builder_.SetInsertPoint(together);
    const ir::BlockId block = test.blocks[unmasked.stays_if ? 1 : 0];
    const ir::Instruction& exit = kernel_.inst(kernel_.block(block).insts[0]);
    for (size_t i = 0; i < inst.results.size(); ++i) {
        builder_.CreateStore(values_.Convert(exit.operands[i], inst.results[i]), loop.results[i]);
    }
    builder_.CreateBr(loop.merge);
}

// Runs the loop while all lanes stay; then goes on to `general` with the iteration's parameters.
void ControlEmitter::EmitUnmaskedLoop(const UnmaskedLoop& unmasked,
                                      const Construct& loop,
                                      BasicBlock* general) {
    const ir::Instruction& inst = kernel_.inst(loop.inst);
    std::span<const ir::InstId> body = kernel_.block(inst.blocks[0]).insts;
    std::span<const ir::InstId> continuing = kernel_.block(inst.blocks[1]).insts;
    std::span<const ir::ValueId> params = kernel_.block(inst.blocks[0]).params;
    BasicBlock* header = code_.NewBlock("unmasked_loop");
    code_.BranchTo(header);
    builder_.SetInsertPoint(header);
    for (size_t i = 0; i < params.size(); ++i) {
        llvm::AllocaInst* slot = loop.body_params[i];
        values_.Set(params[i], builder_.CreateLoad(slot->getAllocatedType(), slot));
    }
    EmitInstructions(body.first(unmasked.test));
    const ir::Instruction& test = kernel_.inst(body[unmasked.test]);
    Value* stay = nullptr;
    if (unmasked.stays_if) {
        stay = AllLanes(test.operands[0]);
    } else {
        Value* leaving = values_.Vector(test.operands[0]);
        stay = builder_.CreateNot(code_.Any(leaving));
    }
    BasicBlock* rest = code_.NewBlock("unmasked_body");
    BasicBlock* leaves = code_.NewBlock("unmasked_leaves");
    code_.EmitMaybe(stay, rest, leaves, true);
    builder_.SetInsertPoint(leaves);
    EmitUnmaskedExit(unmasked, loop, general);
    builder_.SetInsertPoint(rest);
    const ir::BlockId stays = test.blocks[unmasked.stays_if ? 0 : 1];
    const ir::Instruction& yield = kernel_.inst(kernel_.block(stays).insts[0]);
    for (size_t i = 0; i < test.results.size(); ++i) {
        values_.Set(test.results[i], values_.Convert(yield.operands[i], test.results[i]));
    }
    EmitInstructions(body.subspan(unmasked.test + 1, body.size() - unmasked.test - 2));
    // A parallel copy: all are read before the first is set.
    auto bind = [&](const ir::Instruction& jump, std::span<const ir::ValueId> into) {
        llvm::SmallVector<Value*, 8> values;
        for (size_t i = 0; i < into.size(); ++i) {
            values.push_back(values_.Convert(jump.operands[i], into[i]));
        }
        return values;
    };
    std::span<const ir::ValueId> carried = kernel_.block(inst.blocks[1]).params;
    llvm::SmallVector<Value*, 8> values = bind(kernel_.inst(body.back()), carried);
    for (size_t i = 0; i < carried.size(); ++i) {
        values_.Set(carried[i], values[i]);
    }
    EmitInstructions(continuing.first(continuing.size() - 1));
    values = bind(kernel_.inst(continuing.back()), params);
    for (size_t i = 0; i < params.size(); ++i) {
        builder_.CreateStore(values[i], loop.body_params[i]);
    }
    code_.BranchTo(header);
}

// Invocations from this one on do not pass the part of a condition; `code_.invocations` or more if
// that is not known.
uint64_t ControlEmitter::LanesThatPass(ir::ValueId condition) const {
    const ir::Instruction* inst = kernel_.Definition(condition);
    const bool one_row = kernel_.workgroup_size[1] * kernel_.workgroup_size[2] == 1;
    const auto is_index = [&](ir::ValueId value) {
        const ir::Instruction* builtin = kernel_.Definition(value);
        if (builtin == nullptr || builtin->op != Op::kBuiltin || patterns_.map().tile_width != 0 ||
            patterns_.map().workgroups != 1) {
            return false;
        }
        const auto id = static_cast<ir::BuiltinId>(builtin->imm);
        return id == ir::BuiltinId::kLocalIndex || (id == ir::BuiltinId::kLocalIdX && one_row);
    };
    uint64_t bound = 0;
    if (inst == nullptr) {
        return code_.invocations;
    }
    switch (inst->op) {
        case Op::kULt:
        case Op::kSLt:
            // As signed numbers, too: a negative bound is a large one here, which tells nothing.
            return is_index(inst->operands[0]) && kernel_.IsConst(inst->operands[1], &bound)
                       ? bound
                       : code_.invocations;
        case Op::kULe:
        case Op::kSLe:
            return is_index(inst->operands[0]) && kernel_.IsConst(inst->operands[1], &bound)
                       ? bound + 1
                       : code_.invocations;
        case Op::kIEq:
            for (size_t i = 0; i < 2; ++i) {
                if (is_index(inst->operands[i]) && kernel_.IsConst(inst->operands[1 - i], &bound)) {
                    return bound + 1;
                }
            }
            return code_.invocations;
        default:
            return code_.invocations;
    }
}

// How many subgroups, from the first on, do anything in the region: where all that it does is done
// by the first few invocations, as in the steps of a reduction, the others need not be run.
uint32_t ControlEmitter::SubgroupsWithWork(const BarrierRegion& region) const {
    uint64_t most = 0;
    for (const RegionItem& item : region.items) {
        const ir::Instruction& inst = kernel_.inst(item.inst);
        if (item.kind != RegionItem::Kind::kInstruction) {
            return code_.subgroups;
        }
        for (ir::ValueId result : inst.results) {
            const BarrierRegions::Storage storage = regions_.storage(result);
            if (storage == BarrierRegions::Storage::kWorkgroupSlot ||
                storage == BarrierRegions::Storage::kSubgroupSlot) {
                return code_.subgroups;
            }
        }
        if (ir::HasProperty(inst.op, ir::kPure) || inst.op == Op::kBarrier) {
            continue;
        }
        if (inst.op != Op::kIf || patterns_.facts(item.inst).loses_lanes) {
            return code_.subgroups;
        }
        const std::span<const ir::InstId> otherwise = kernel_.block(inst.blocks[1]).insts;
        if (otherwise.size() != 1 || kernel_.inst(otherwise[0]).op != Op::kYield) {
            return code_.subgroups;
        }
        uint64_t passing = code_.invocations;
        for (ir::ValueId part : ir::PartsOfCondition(kernel_, inst.operands[0])) {
            passing = std::min(passing, LanesThatPass(part));
        }
        most = std::max(most, passing);
    }
    const uint64_t subgroups =
        (std::min<uint64_t>(most, code_.invocations) + code_.lanes - 1) / code_.lanes;
    return std::max<uint32_t>(1, static_cast<uint32_t>(subgroups));
}

}  // namespace fornax::kernel
