#include "compiler/kernel/codegen/emit_control.h"

#include <algorithm>
#include <cassert>

#include "compiler/kernel/codegen/matrix_emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/ir/condition_parts.h"

namespace fornax::kernel {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

namespace {

// Code that some lanes may all skip is worth a test from this many operations on.
constexpr uint32_t kGuardThreshold = 30;

}  // namespace

void ControlEmitter::EmitBlock(ir::BlockId block) {
    EmitInstructions(kernel_.block(block).insts);
}

void ControlEmitter::EmitInstructions(std::span<const ir::InstId> insts) {
    subgroups_.UnmaskMatrices(insts);
    for (size_t i = 0; i < insts.size() && !code_.Terminated(); ++i) {
        ir::InstId id = insts[i];
        EmitInstruction(id);
        if (code_.Terminated()) {
            return;
        }
        std::span<const ir::InstId> rest = insts.subspan(i + 1);
        bool lost = (ir::InfoOf(kernel_.inst(id).op).properties & ir::kRegions) &&
                    patterns_.facts(id).loses_lanes;
        if (lost && NeedsGuard(rest)) {
            BasicBlock* run = code_.NewBlock("rest");
            BasicBlock* end = code_.NewBlock("rest_end");
            code_.EmitMaybe(code_.Any(code_.Mask()), run, end, true);
            builder_.SetInsertPoint(run);
            EmitInstructions(rest);
            code_.BranchTo(end);
            builder_.SetInsertPoint(end);
            return;
        }
    }
}

void ControlEmitter::EmitInstruction(ir::InstId id) {
    const ExplainRecorder::Scope recorded(recorder_, id, code_.epoch, code_.mask != nullptr);
    const ir::Instruction& inst = kernel_.inst(id);
    const uint8_t properties = ir::InfoOf(inst.op).properties;
    if (code_.matrices && !code_.matrices->Before(id, inst, code_.mask != nullptr)) {
        return;
    }
    if (properties & ir::kTerminator) {
        EmitTerminator(id);
        return;
    }
    if (properties & ir::kSubgroup) {
        subgroups_.EmitSubgroup(inst);
        return;
    }
    switch (inst.op) {
        case Op::kIf:
            EmitIf(id);
            return;
        case Op::kSwitch:
            EmitSwitch(id);
            return;
        case Op::kLoop:
            EmitLoop(id);
            return;
        case Op::kScope:
            EmitScope(id);
            return;
        case Op::kLoadBuffer:
        case Op::kStoreBuffer:
        case Op::kLoadGlobal:
        case Op::kStoreGlobal:
        case Op::kLoadShared:
        case Op::kStoreShared:
            accesses_.EmitMemory(inst);
            return;
        case Op::kLoadLocal:
        case Op::kStoreLocal:
            accesses_.EmitLocal(inst);
            return;
        case Op::kAtomicBuffer:
        case Op::kAtomicGlobal:
        case Op::kAtomicShared:
            atomics_.EmitAtomic(inst);
            return;
        case Op::kReadClock:
            values_.Set(inst.results[0], memory_.ReadClock());
            return;
        case Op::kMemoryBarrier:
            builder_.CreateFence(llvm::AtomicOrdering::AcquireRelease);
            return;
        case Op::kBarrier:
            memory_.CompilerFence();
            return;
        case Op::kCount:
            EmitCount(inst);
            return;
        default:
            accesses_.EmitPure(inst);
            return;
    }
}

void ControlEmitter::EmitCount(const ir::Instruction& inst) {
    Value* active = builder_.getInt64(code_.lanes);
    if (code_.mask) {
        Value* bits = code_.lanes == 1 ? code_.mask : code_.MaskBits(code_.mask);
        active = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits);
        active = builder_.CreateZExtOrTrunc(active, builder_.getInt64Ty());
    }
    code_.counts.Count(builder_, *code_.entry, inst.imm, active);
}

Construct ControlEmitter::MakeConstruct(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    const ConstructFacts& facts = patterns_.facts(id);
    Construct construct;
    construct.inst = id;
    construct.merge = code_.NewBlock("merge");
    construct.blend = code_.lanes > 1 && (facts.divergent || facts.masked_exits);
    for (ir::ValueId result : inst.results) {
        construct.results.push_back(code_.NewSlot(values_.RawType(result), "result"));
    }
    // Where no lane leaves for an outer construct, all that enter reach the merge.
    if (facts.loses_lanes && code_.lanes > 1) {
        llvm::Type* type = code_.VectorOf(builder_.getInt1Ty());
        construct.exited = code_.NewAlloca(type, "exited");
        builder_.CreateStore(llvm::Constant::getNullValue(type), construct.exited);
    }
    return construct;
}

void ControlEmitter::FinishConstruct(Value* entry_mask) {
    Construct construct = std::move(code_.constructs.back());
    code_.constructs.pop_back();
    code_.BranchTo(construct.merge);
    builder_.SetInsertPoint(construct.merge);
    code_.mask = construct.exited
                     ? builder_.CreateLoad(construct.exited->getAllocatedType(), construct.exited)
                     : entry_mask;
    const ir::Instruction& inst = kernel_.inst(construct.inst);
    for (size_t i = 0; i < inst.results.size(); ++i) {
        llvm::AllocaInst* slot = construct.results[i];
        values_.Set(inst.results[i], builder_.CreateLoad(slot->getAllocatedType(), slot));
    }
}

void ControlEmitter::StoreMerged(llvm::ArrayRef<llvm::AllocaInst*> slots,
                                 std::span<const ir::ValueId> into,
                                 std::span<const ir::ValueId> from,
                                 bool blend) {
    llvm::SmallVector<Value*, 8> values;
    for (size_t i = 0; i < from.size(); ++i) {
        values.push_back(values_.Convert(from[i], into[i]));
    }
    for (size_t i = 0; i < from.size(); ++i) {
        Value* value = values[i];
        if (blend && code_.mask) {
            Value* old = builder_.CreateLoad(value->getType(), slots[i]);
            // A uniform result is one value for all lanes that leave here, if any do.
            Value* replaced = value->getType()->isVectorTy() ? code_.mask : code_.Any(code_.mask);
            value = builder_.CreateSelect(replaced, value, old);
        }
        builder_.CreateStore(value, slots[i]);
    }
}

void ControlEmitter::AddLanes(llvm::AllocaInst* mask_slot) {
    Value* old = builder_.CreateLoad(mask_slot->getAllocatedType(), mask_slot);
    builder_.CreateStore(builder_.CreateOr(old, code_.Mask()), mask_slot);
}

void ControlEmitter::EmitTerminator(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    switch (inst.op) {
        case Op::kYield: {
            Construct& construct = code_.constructs.back();
            StoreMerged(construct.results, kernel_.inst(construct.inst).results, inst.operands,
                        construct.blend);
            if (construct.exited) {
                AddLanes(construct.exited);
            }
            return;
        }
        case Op::kExit: {
            Construct& construct = code_.FindConstruct(inst.target);
            StoreMerged(construct.results, kernel_.inst(construct.inst).results, inst.operands,
                        construct.blend);
            if (construct.exited) {
                AddLanes(construct.exited);
            }
            if (patterns_.IsBranch(id)) {
                builder_.CreateBr(construct.merge);
            } else {
                code_.mask = llvm::Constant::getNullValue(code_.VectorOf(builder_.getInt1Ty()));
            }
            return;
        }
        case Op::kContinue: {
            Construct& construct = code_.FindConstruct(inst.target);
            const ir::Instruction& loop = kernel_.inst(inst.target);
            StoreMerged(construct.continuing_params, kernel_.block(loop.blocks[1]).params,
                        inst.operands, construct.blend_continue);
            if (construct.continued) {
                AddLanes(construct.continued);
            }
            if (patterns_.IsBranch(id)) {
                builder_.CreateBr(construct.continuing);
            } else {
                code_.mask = llvm::Constant::getNullValue(code_.VectorOf(builder_.getInt1Ty()));
            }
            return;
        }
        case Op::kNext: {
            Construct& construct = code_.constructs.back();
            const ir::Instruction& loop = kernel_.inst(construct.inst);
            StoreMerged(construct.body_params, kernel_.block(loop.blocks[0]).params, inst.operands,
                        false);
            if (construct.live) {
                builder_.CreateStore(code_.Mask(), construct.live);
            }
            return;
        }
        default:
            EmitReturn(id);
            return;
    }
}

void ControlEmitter::EmitReturn(ir::InstId id) {
    if (regions_.keeps_mask()) {
        llvm::Type* type = builder_.getIntNTy(code_.lanes);
        Value* pointer = spills_.KeptMaskPointer();
        Value* gone = code_.lanes == 1 ? builder_.getTrue() : code_.MaskBits(code_.Mask());
        Value* kept =
            builder_.CreateAnd(builder_.CreateLoad(type, pointer), builder_.CreateNot(gone));
        builder_.CreateStore(kept, pointer);
    }
    if (patterns_.IsBranch(id)) {
        builder_.CreateBr(code_.region_end);
    } else {
        code_.mask = llvm::Constant::getNullValue(code_.VectorOf(builder_.getInt1Ty()));
    }
}

bool ControlEmitter::NeedsGuard(std::span<const ir::InstId> insts) const {
    uint32_t cost = 0;
    auto visit = [&](auto& self, std::span<const ir::InstId> list) -> bool {
        for (ir::InstId id : list) {
            const ir::Instruction& inst = kernel_.inst(id);
            const ir::OpInfo& info = ir::InfoOf(inst.op);
            if (info.properties & (ir::kReadsMemory | ir::kWritesMemory | ir::kConvergent)) {
                return true;
            }
            if (inst.op == Op::kLoop || ++cost > kGuardThreshold) {
                return true;
            }
            for (ir::BlockId block : inst.blocks) {
                if (self(self, kernel_.block(block).insts)) {
                    return true;
                }
            }
        }
        return false;
    };
    return visit(visit, insts);
}

void ControlEmitter::EmitGuarded(ir::BlockId block, Value* mask, Value* any, bool likely) {
    std::span<const ir::InstId> insts = kernel_.block(block).insts;
    code_.mask = mask;
    if (!NeedsGuard(insts)) {
        EmitInstructions(insts);
        return;
    }
    BasicBlock* run = code_.NewBlock("side");
    BasicBlock* end = code_.NewBlock("side_end");
    code_.EmitMaybe(any ? any : code_.Any(mask), run, end, likely);
    builder_.SetInsertPoint(run);
    EmitInstructions(insts);
    code_.BranchTo(end);
    builder_.SetInsertPoint(end);
}

// Loads what lies inside of memory, and nothing where it does not: the usual case is that it does.
bool ControlEmitter::IsInsideTest(const ir::Instruction& branch) const {
    const auto joins = [](ir::ValueId, const ir::Instruction& inst) {
        return inst.op == Op::kAnd || inst.op == Op::kOr;
    };
    const auto compares = [&](ir::ValueId value) {
        const ir::Instruction* inst = kernel_.Definition(value);
        return inst && inst->op == Op::kULt;
    };
    const auto only = [&](ir::BlockId block, uint8_t properties) {
        return std::ranges::all_of(kernel_.block(block).insts, [&](ir::InstId id) {
            const Op op = kernel_.inst(id).op;
            return op == Op::kYield || ir::HasProperty(op, properties);
        });
    };
    return std::ranges::all_of(ir::LeavesOf(kernel_, branch.operands[0], joins), compares) &&
           NeedsGuard(kernel_.block(branch.blocks[0]).insts) &&
           only(branch.blocks[0], ir::kPure | ir::kReadsMemory) &&
           only(branch.blocks[1], ir::kPure | ir::kRegions);
}

// The condition of a branch that may divide lanes. What of it is the same for all lanes becomes a
// branch around the rest, so that masks do not depend on it: a loop makes them before it begins.
Value* ControlEmitter::LanesCondition(const ir::Instruction& branch, BasicBlock* merge) {
    Value* all = nullptr;    // of what is the same for all lanes
    Value* lanes = nullptr;  // of the rest
    for (ir::ValueId id : PartsOf(branch.operands[0])) {
        const bool uniform = patterns_.pattern(id).uniform();
        Value* part = uniform ? values_.Raw(id) : values_.Vector(id);
        Value*& of = uniform ? all : lanes;
        of = of ? builder_.CreateAnd(of, part) : part;
    }
    if (!all || !lanes || NeedsGuard(kernel_.block(branch.blocks[1]).insts)) {
        return values_.Vector(branch.operands[0]);
    }
    BasicBlock* some = code_.NewBlock("some_lane");
    BasicBlock* none = code_.NewBlock("no_lane");
    code_.EmitMaybe(all, some, none, true);
    Value* mask = code_.mask;
    builder_.SetInsertPoint(none);
    EmitBlock(branch.blocks[1]);
    code_.BranchTo(merge);
    code_.mask = mask;
    builder_.SetInsertPoint(some);
    return lanes;
}

void ControlEmitter::EmitIf(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    Value* entry_mask = code_.mask;
    code_.constructs.push_back(MakeConstruct(id));
    BasicBlock* merge = code_.constructs.back().merge;
    if (!patterns_.facts(id).divergent) {
        BasicBlock* then = code_.NewBlock("then");
        BasicBlock* otherwise = code_.NewBlock("else");
        Value* condition = values_.Scalar(inst.operands[0]);
        if (IsInsideTest(inst)) {
            code_.EmitMaybe(condition, then, otherwise, true);
        } else {
            builder_.CreateCondBr(condition, then, otherwise);
        }
        for (int side = 0; side < 2; ++side) {
            builder_.SetInsertPoint(side == 0 ? then : otherwise);
            code_.mask = entry_mask;
            EmitBlock(inst.blocks[side]);
            code_.BranchTo(merge);
        }
        builder_.SetInsertPoint(merge);
        // FinishConstruct expects an open block before the merge.
        BasicBlock* after = code_.NewBlock("after");
        code_.constructs.back().merge = after;
        FinishConstruct(entry_mask);
        return;
    }
    if (WorthAllLanes(inst)) {
        BasicBlock* unmasked = code_.NewBlock("all_lanes");
        BasicBlock* some = code_.NewBlock("some_lanes");
        code_.EmitMaybe(AllLanes(inst.operands[0]), unmasked, some, true);
        builder_.SetInsertPoint(unmasked);
        EmitBlock(inst.blocks[0]);
        code_.BranchTo(merge);
        builder_.SetInsertPoint(some);
        code_.mask = nullptr;
    }
    Value* any = code_.mask ? nullptr : TestLanes(inst.operands[0]).some;
    Value* condition = LanesCondition(inst, merge);
    Value* entry = code_.Mask();
    Value* taken = builder_.CreateAnd(entry, condition);
    EmitGuarded(inst.blocks[0], taken, any, IsInsideTest(inst));
    if (!code_.Terminated()) {
        // Not `entry and not condition`: of n of these, one after the other, LLVM would try each
        // against all before it.
        EmitGuarded(inst.blocks[1], builder_.CreateXor(entry, taken));
    }
    FinishConstruct(entry_mask);
}

void ControlEmitter::EmitSwitch(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    Value* entry_mask = code_.mask;
    code_.constructs.push_back(MakeConstruct(id));
    BasicBlock* merge = code_.constructs.back().merge;
    if (!patterns_.facts(id).divergent) {
        Value* selector = values_.Scalar(inst.operands[0]);
        BasicBlock* otherwise = code_.NewBlock("default");
        auto* branch = builder_.CreateSwitch(selector, otherwise);
        for (size_t i = 0; i < inst.blocks.size(); ++i) {
            BasicBlock* start = i == 0 ? otherwise : code_.NewBlock("case");
            if (i != 0) {
                branch->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(
                                    selector->getType(), inst.case_values[i - 1])),
                                start);
            }
            builder_.SetInsertPoint(start);
            code_.mask = entry_mask;
            EmitBlock(inst.blocks[i]);
            code_.BranchTo(merge);
        }
        builder_.SetInsertPoint(merge);
        code_.constructs.back().merge = code_.NewBlock("after");
        FinishConstruct(entry_mask);
        return;
    }
    Value* selector = values_.Vector(inst.operands[0]);
    Value* entry = code_.Mask();
    // The default comes last, so that one mask of what no case took yet lives through the cases.
    Value* remaining = entry;
    for (size_t i = 1; i < inst.blocks.size() && !code_.Terminated(); ++i) {
        Value* literal = llvm::ConstantInt::get(selector->getType(), inst.case_values[i - 1]);
        Value* taken = builder_.CreateAnd(entry, builder_.CreateICmpEQ(selector, literal));
        remaining = builder_.CreateXor(remaining, taken);
        EmitGuarded(inst.blocks[i], taken);
    }
    if (!code_.Terminated()) {
        EmitGuarded(inst.blocks[0], remaining);
    }
    FinishConstruct(entry_mask);
}

void ControlEmitter::EmitScope(ir::InstId id) {
    Value* entry_mask = code_.mask;
    code_.constructs.push_back(MakeConstruct(id));
    EmitBlock(kernel_.inst(id).blocks[0]);
    FinishConstruct(entry_mask);
}

void ControlEmitter::EmitLoop(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    const ConstructFacts& facts = patterns_.facts(id);
    std::span<const ir::ValueId> body_params = kernel_.block(inst.blocks[0]).params;
    std::span<const ir::ValueId> continuing_params = kernel_.block(inst.blocks[1]).params;
    Value* entry_mask = code_.mask;
    const bool divergent = facts.divergent && code_.lanes > 1;
    {
        Construct construct = MakeConstruct(id);
        construct.continuing = code_.NewBlock("continuing");
        for (ir::ValueId param : body_params) {
            construct.body_params.push_back(code_.NewAlloca(values_.RawType(param), "param"));
        }
        for (ir::ValueId param : continuing_params) {
            construct.continuing_params.push_back(code_.NewAlloca(values_.RawType(param), "param"));
        }
        construct.blend_continue =
            code_.lanes > 1 && facts.masked_continues && facts.continue_sites > 1;
        if (divergent) {
            llvm::Type* type = code_.VectorOf(builder_.getInt1Ty());
            construct.live = code_.NewAlloca(type, "live");
            construct.continued = code_.NewAlloca(type, "continued");
            builder_.CreateStore(code_.Mask(), construct.live);
        }
        StoreMerged(construct.body_params, body_params, inst.operands, false);
        code_.constructs.push_back(std::move(construct));
    }
    // Copies, because nested constructs move the list.
    const Construct loop = code_.constructs.back();
    BasicBlock* header = code_.NewBlock("loop");
    if (UnmaskedLoop unmasked; FindUnmaskedLoop(id, unmasked)) {
        EmitUnmaskedLoop(unmasked, loop, header);
    } else {
        code_.BranchTo(header);
    }
    builder_.SetInsertPoint(header);
    if (divergent) {
        code_.mask = builder_.CreateLoad(loop.live->getAllocatedType(), loop.live);
        BasicBlock* body = code_.NewBlock("loop_body");
        code_.EmitMaybe(code_.Any(code_.mask), body, loop.merge, true);
        builder_.SetInsertPoint(body);
        builder_.CreateStore(llvm::Constant::getNullValue(code_.mask->getType()), loop.continued);
        // `next` sets it; a continuing block may end in another way.
        builder_.CreateStore(llvm::Constant::getNullValue(code_.mask->getType()), loop.live);
    }
    auto load_params = [&](std::span<const ir::ValueId> params,
                           llvm::ArrayRef<llvm::AllocaInst*> slots) {
        for (size_t i = 0; i < params.size(); ++i) {
            values_.Set(params[i], builder_.CreateLoad(slots[i]->getAllocatedType(), slots[i]));
        }
    };
    // Nothing of the iteration before: PromoteSlots looks no further back.
    for (llvm::AllocaInst* slot : loop.continuing_params) {
        builder_.CreateStore(llvm::UndefValue::get(slot->getAllocatedType()), slot);
    }
    load_params(body_params, loop.body_params);
    EmitBlock(inst.blocks[0]);
    code_.BranchTo(loop.continuing);

    builder_.SetInsertPoint(loop.continuing);
    code_.mask = entry_mask;
    if (divergent) {
        code_.mask = builder_.CreateLoad(loop.continued->getAllocatedType(), loop.continued);
        if (NeedsGuard(kernel_.block(inst.blocks[1]).insts)) {
            BasicBlock* run = code_.NewBlock("continuing_live");
            code_.EmitMaybe(code_.Any(code_.mask), run, loop.merge, true);
            builder_.SetInsertPoint(run);
        }
    }
    load_params(continuing_params, loop.continuing_params);
    EmitBlock(inst.blocks[1]);
    code_.BranchTo(header);

    // Everything reaches the merge by branches of its own.
    code_.constructs.back().merge = code_.NewBlock("after");
    builder_.SetInsertPoint(loop.merge);
    FinishConstruct(entry_mask);
}

}  // namespace fornax::kernel
