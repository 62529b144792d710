// Control flow inside a segment. A branch that is the same for all lanes stays a branch; any other
// runs both sides under masks and blends what they give. Lanes that leave a construct early wait at
// its merge.
#include <algorithm>
#include <cassert>

#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/matrix_emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;

namespace {

// Code that some lanes may all skip is worth a test from this many operations on.
constexpr uint32_t kGuardThreshold = 30;

}  // namespace

void Emitter::EmitBlock(ir::BlockId block) {
    EmitInstructions(kernel_.block(block).insts);
}

void Emitter::EmitInstructions(std::span<const ir::InstId> insts) {
    UnmaskMatrices(insts);
    for (size_t i = 0; i < insts.size() && !Terminated(); ++i) {
        ir::InstId id = insts[i];
        EmitInstruction(id);
        if (Terminated()) {
            return;
        }
        std::span<const ir::InstId> rest = insts.subspan(i + 1);
        bool lost = (ir::InfoOf(kernel_.inst(id).op).properties & ir::kRegions) &&
                    shapes_.facts(id).loses_lanes;
        if (lost && NeedsGuard(rest)) {
            BasicBlock* run = NewBlock("rest");
            BasicBlock* end = NewBlock("rest_end");
            EmitMaybe(Any(Mask()), run, end, true);
            builder_.SetInsertPoint(run);
            EmitInstructions(rest);
            BranchTo(end);
            builder_.SetInsertPoint(end);
            return;
        }
    }
}

void Emitter::EmitInstruction(ir::InstId id) {
    const ExplainRecorder::Scope recorded(recorder_, id, epoch_, mask_ != nullptr);
    const ir::Instruction& inst = kernel_.inst(id);
    const uint8_t properties = ir::InfoOf(inst.op).properties;
    if (matrices_ && !matrices_->Before(id, inst, mask_ != nullptr)) {
        return;
    }
    if (properties & ir::kTerminator) {
        EmitTerminator(id);
        return;
    }
    if (properties & ir::kSubgroup) {
        EmitSubgroup(inst);
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
            EmitMemory(inst);
            return;
        case Op::kLoadLocal:
        case Op::kStoreLocal:
            EmitLocal(inst);
            return;
        case Op::kAtomicBuffer:
        case Op::kAtomicGlobal:
        case Op::kAtomicShared:
            EmitAtomic(inst);
            return;
        case Op::kReadClock:
            Set(inst.results[0], ReadClock());
            return;
        case Op::kMemoryBarrier:
            builder_.CreateFence(llvm::AtomicOrdering::AcquireRelease);
            return;
        case Op::kBarrier:
            CompilerFence();
            return;
        case Op::kCount:
            EmitCount(inst);
            return;
        default:
            EmitPure(inst);
            return;
    }
}

void Emitter::EmitCount(const ir::Instruction& inst) {
    Value* active = builder_.getInt64(lanes_);
    if (mask_) {
        Value* bits = lanes_ == 1 ? mask_ : MaskBits(mask_);
        active = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits);
        active = builder_.CreateZExtOrTrunc(active, builder_.getInt64Ty());
    }
    counts_.Count(builder_, *entry_, inst.imm, active);
}

Emitter::Construct Emitter::MakeConstruct(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    const ConstructFacts& facts = shapes_.facts(id);
    Construct construct;
    construct.inst = id;
    construct.merge = NewBlock("merge");
    construct.blend = lanes_ > 1 && (facts.divergent || facts.masked_exits);
    for (ir::ValueId result : inst.results) {
        construct.results.push_back(NewSlot(RawType(result), "result"));
    }
    // Where no lane leaves for an outer construct, all that enter reach the merge.
    if (facts.loses_lanes && lanes_ > 1) {
        llvm::Type* type = VectorOf(builder_.getInt1Ty());
        construct.exited = NewAlloca(type, "exited");
        builder_.CreateStore(llvm::Constant::getNullValue(type), construct.exited);
    }
    return construct;
}

void Emitter::FinishConstruct(Value* entry_mask) {
    Construct construct = std::move(constructs_.back());
    constructs_.pop_back();
    BranchTo(construct.merge);
    builder_.SetInsertPoint(construct.merge);
    mask_ = construct.exited
                ? builder_.CreateLoad(construct.exited->getAllocatedType(), construct.exited)
                : entry_mask;
    const ir::Instruction& inst = kernel_.inst(construct.inst);
    for (size_t i = 0; i < inst.results.size(); ++i) {
        llvm::AllocaInst* slot = construct.results[i];
        Set(inst.results[i], builder_.CreateLoad(slot->getAllocatedType(), slot));
    }
}

Emitter::Construct& Emitter::FindConstruct(ir::InstId id) {
    for (Construct& construct : constructs_) {
        if (construct.inst == id) {
            return construct;
        }
    }
    assert(false && "an exit leaves a construct that does not enclose it");
    return constructs_.front();
}

void Emitter::StoreMerged(llvm::ArrayRef<llvm::AllocaInst*> slots,
                          std::span<const ir::ValueId> into,
                          std::span<const ir::ValueId> from,
                          bool blend) {
    llvm::SmallVector<Value*, 8> values;
    for (size_t i = 0; i < from.size(); ++i) {
        values.push_back(Convert(from[i], into[i]));
    }
    for (size_t i = 0; i < from.size(); ++i) {
        Value* value = values[i];
        if (blend && mask_) {
            Value* old = builder_.CreateLoad(value->getType(), slots[i]);
            // A uniform result is one value for all lanes that leave here, if any do.
            Value* replaced = value->getType()->isVectorTy() ? mask_ : Any(mask_);
            value = builder_.CreateSelect(replaced, value, old);
        }
        builder_.CreateStore(value, slots[i]);
    }
}

void Emitter::AddLanes(llvm::AllocaInst* mask_slot) {
    Value* old = builder_.CreateLoad(mask_slot->getAllocatedType(), mask_slot);
    builder_.CreateStore(builder_.CreateOr(old, Mask()), mask_slot);
}

void Emitter::EmitTerminator(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    switch (inst.op) {
        case Op::kYield: {
            Construct& construct = constructs_.back();
            StoreMerged(construct.results, kernel_.inst(construct.inst).results, inst.operands,
                        construct.blend);
            if (construct.exited) {
                AddLanes(construct.exited);
            }
            return;
        }
        case Op::kExit: {
            Construct& construct = FindConstruct(inst.target);
            StoreMerged(construct.results, kernel_.inst(construct.inst).results, inst.operands,
                        construct.blend);
            if (construct.exited) {
                AddLanes(construct.exited);
            }
            if (shapes_.IsBranch(id)) {
                builder_.CreateBr(construct.merge);
            } else {
                mask_ = llvm::Constant::getNullValue(VectorOf(builder_.getInt1Ty()));
            }
            return;
        }
        case Op::kContinue: {
            Construct& construct = FindConstruct(inst.target);
            const ir::Instruction& loop = kernel_.inst(inst.target);
            StoreMerged(construct.continuing_params, kernel_.block(loop.blocks[1]).params,
                        inst.operands, construct.blend_continue);
            if (construct.continued) {
                AddLanes(construct.continued);
            }
            if (shapes_.IsBranch(id)) {
                builder_.CreateBr(construct.continuing);
            } else {
                mask_ = llvm::Constant::getNullValue(VectorOf(builder_.getInt1Ty()));
            }
            return;
        }
        case Op::kNext: {
            Construct& construct = constructs_.back();
            const ir::Instruction& loop = kernel_.inst(construct.inst);
            StoreMerged(construct.body_params, kernel_.block(loop.blocks[0]).params, inst.operands,
                        false);
            if (construct.live) {
                builder_.CreateStore(Mask(), construct.live);
            }
            return;
        }
        default:
            EmitReturn(id);
            return;
    }
}

void Emitter::EmitReturn(ir::InstId id) {
    if (regions_.keeps_mask()) {
        llvm::Type* type = builder_.getIntNTy(lanes_);
        Value* pointer = KeptMaskPointer();
        Value* gone = lanes_ == 1 ? builder_.getTrue() : MaskBits(Mask());
        Value* kept =
            builder_.CreateAnd(builder_.CreateLoad(type, pointer), builder_.CreateNot(gone));
        builder_.CreateStore(kept, pointer);
    }
    if (shapes_.IsBranch(id)) {
        builder_.CreateBr(segment_end_);
    } else {
        mask_ = llvm::Constant::getNullValue(VectorOf(builder_.getInt1Ty()));
    }
}

bool Emitter::NeedsGuard(std::span<const ir::InstId> insts) const {
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

void Emitter::EmitGuarded(ir::BlockId block, Value* mask, Value* any) {
    std::span<const ir::InstId> insts = kernel_.block(block).insts;
    mask_ = mask;
    if (!NeedsGuard(insts)) {
        EmitInstructions(insts);
        return;
    }
    BasicBlock* run = NewBlock("side");
    BasicBlock* end = NewBlock("side_end");
    EmitMaybe(any ? any : Any(mask), run, end, false);
    builder_.SetInsertPoint(run);
    EmitInstructions(insts);
    BranchTo(end);
    builder_.SetInsertPoint(end);
}

void Emitter::EmitIf(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    Value* entry_mask = mask_;
    constructs_.push_back(MakeConstruct(id));
    BasicBlock* merge = constructs_.back().merge;
    if (!shapes_.facts(id).divergent) {
        BasicBlock* then = NewBlock("then");
        BasicBlock* otherwise = NewBlock("else");
        builder_.CreateCondBr(Scalar(inst.operands[0]), then, otherwise);
        for (int side = 0; side < 2; ++side) {
            builder_.SetInsertPoint(side == 0 ? then : otherwise);
            mask_ = entry_mask;
            EmitBlock(inst.blocks[side]);
            BranchTo(merge);
        }
        builder_.SetInsertPoint(merge);
        // FinishConstruct expects an open block before the merge.
        BasicBlock* after = NewBlock("after");
        constructs_.back().merge = after;
        FinishConstruct(entry_mask);
        return;
    }
    if (WorthAllLanes(inst)) {
        BasicBlock* full = NewBlock("all_lanes");
        BasicBlock* some = NewBlock("some_lanes");
        EmitMaybe(AllLanes(inst.operands[0]), full, some, true);
        builder_.SetInsertPoint(full);
        EmitBlock(inst.blocks[0]);
        BranchTo(merge);
        builder_.SetInsertPoint(some);
        mask_ = nullptr;
    }
    Value* any = mask_ ? nullptr : TestLanes(inst.operands[0]).some;
    Value* condition = Vector(inst.operands[0]);
    Value* entry = Mask();
    Value* taken = builder_.CreateAnd(entry, condition);
    EmitGuarded(inst.blocks[0], taken, any);
    if (!Terminated()) {
        // Not `entry and not condition`: of n of these, one after the other, LLVM would try each
        // against all before it.
        EmitGuarded(inst.blocks[1], builder_.CreateXor(entry, taken));
    }
    FinishConstruct(entry_mask);
}

void Emitter::EmitSwitch(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    Value* entry_mask = mask_;
    constructs_.push_back(MakeConstruct(id));
    BasicBlock* merge = constructs_.back().merge;
    if (!shapes_.facts(id).divergent) {
        Value* selector = Scalar(inst.operands[0]);
        BasicBlock* otherwise = NewBlock("default");
        auto* branch = builder_.CreateSwitch(selector, otherwise);
        for (size_t i = 0; i < inst.blocks.size(); ++i) {
            BasicBlock* start = i == 0 ? otherwise : NewBlock("case");
            if (i != 0) {
                branch->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(
                                    selector->getType(), inst.case_values[i - 1])),
                                start);
            }
            builder_.SetInsertPoint(start);
            mask_ = entry_mask;
            EmitBlock(inst.blocks[i]);
            BranchTo(merge);
        }
        builder_.SetInsertPoint(merge);
        constructs_.back().merge = NewBlock("after");
        FinishConstruct(entry_mask);
        return;
    }
    Value* selector = Vector(inst.operands[0]);
    Value* entry = Mask();
    // The default comes last, so that one mask of what no case took yet lives through the cases.
    Value* remaining = entry;
    for (size_t i = 1; i < inst.blocks.size() && !Terminated(); ++i) {
        Value* literal = llvm::ConstantInt::get(selector->getType(), inst.case_values[i - 1]);
        Value* taken = builder_.CreateAnd(entry, builder_.CreateICmpEQ(selector, literal));
        remaining = builder_.CreateXor(remaining, taken);
        EmitGuarded(inst.blocks[i], taken);
    }
    if (!Terminated()) {
        EmitGuarded(inst.blocks[0], remaining);
    }
    FinishConstruct(entry_mask);
}

void Emitter::EmitScope(ir::InstId id) {
    Value* entry_mask = mask_;
    constructs_.push_back(MakeConstruct(id));
    EmitBlock(kernel_.inst(id).blocks[0]);
    FinishConstruct(entry_mask);
}

void Emitter::EmitLoop(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    const ConstructFacts& facts = shapes_.facts(id);
    std::span<const ir::ValueId> body_params = kernel_.block(inst.blocks[0]).params;
    std::span<const ir::ValueId> continuing_params = kernel_.block(inst.blocks[1]).params;
    Value* entry_mask = mask_;
    const bool divergent = facts.divergent && lanes_ > 1;
    {
        Construct construct = MakeConstruct(id);
        construct.continuing = NewBlock("continuing");
        for (ir::ValueId param : body_params) {
            construct.body_params.push_back(NewAlloca(RawType(param), "param"));
        }
        for (ir::ValueId param : continuing_params) {
            construct.continuing_params.push_back(NewAlloca(RawType(param), "param"));
        }
        construct.blend_continue = lanes_ > 1 && facts.masked_continues && facts.continue_sites > 1;
        if (divergent) {
            llvm::Type* type = VectorOf(builder_.getInt1Ty());
            construct.live = NewAlloca(type, "live");
            construct.continued = NewAlloca(type, "continued");
            builder_.CreateStore(Mask(), construct.live);
        }
        StoreMerged(construct.body_params, body_params, inst.operands, false);
        constructs_.push_back(std::move(construct));
    }
    // Copies, because nested constructs move the list.
    const Construct loop = constructs_.back();
    BasicBlock* header = NewBlock("loop");
    if (FullLoop full; FindFullLoop(id, full)) {
        EmitFullLoop(full, loop, header);
    } else {
        BranchTo(header);
    }
    builder_.SetInsertPoint(header);
    if (divergent) {
        mask_ = builder_.CreateLoad(loop.live->getAllocatedType(), loop.live);
        BasicBlock* body = NewBlock("loop_body");
        EmitMaybe(Any(mask_), body, loop.merge, true);
        builder_.SetInsertPoint(body);
        builder_.CreateStore(llvm::Constant::getNullValue(mask_->getType()), loop.continued);
        // `next` sets it; a continuing block may end in another way.
        builder_.CreateStore(llvm::Constant::getNullValue(mask_->getType()), loop.live);
    }
    auto load_params = [&](std::span<const ir::ValueId> params,
                           llvm::ArrayRef<llvm::AllocaInst*> slots) {
        for (size_t i = 0; i < params.size(); ++i) {
            Set(params[i], builder_.CreateLoad(slots[i]->getAllocatedType(), slots[i]));
        }
    };
    // Nothing of the iteration before: PromoteSlots looks no further back.
    for (llvm::AllocaInst* slot : loop.continuing_params) {
        builder_.CreateStore(llvm::UndefValue::get(slot->getAllocatedType()), slot);
    }
    load_params(body_params, loop.body_params);
    EmitBlock(inst.blocks[0]);
    BranchTo(loop.continuing);

    builder_.SetInsertPoint(loop.continuing);
    mask_ = entry_mask;
    if (divergent) {
        mask_ = builder_.CreateLoad(loop.continued->getAllocatedType(), loop.continued);
        if (NeedsGuard(kernel_.block(inst.blocks[1]).insts)) {
            BasicBlock* run = NewBlock("continuing_live");
            EmitMaybe(Any(mask_), run, loop.merge, true);
            builder_.SetInsertPoint(run);
        }
    }
    load_params(continuing_params, loop.continuing_params);
    EmitBlock(inst.blocks[1]);
    BranchTo(header);

    // Everything reaches the merge by branches of its own.
    constructs_.back().merge = NewBlock("after");
    builder_.SetInsertPoint(loop.merge);
    FinishConstruct(entry_mask);
}

}  // namespace fornax::kernel
