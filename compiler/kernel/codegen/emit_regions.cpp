// Workgroup-level control flow and the segments between barriers. Segments run for one subgroup
// after the other; what lives from one to another has a spill slot outside them.
#include <algorithm>
#include <cassert>
#include <utility>

#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/matrix_emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"

namespace fornax::kernel {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;
using Home = Regions::Home;

void Emitter::EmitWorkgroupBlock(ir::BlockId block) {
    epoch_ = 0;
    for (const Step& step : regions_.steps(block)) {
        switch (step.kind) {
            case Step::Kind::kHoisted:
                EmitPure(kernel_.inst(step.inst));
                break;
            case Step::Kind::kSegment:
                EmitSegment(step.segment);
                epoch_ = 0;
                break;
            case Step::Kind::kConstruct:
                EmitWorkgroupConstruct(step.inst);
                break;
            case Step::Kind::kTerminator:
                EmitWorkgroupTerminator(step.inst);
                break;
        }
        if (Terminated()) {
            return;
        }
    }
}

Emitter::Construct& Emitter::PushWorkgroupConstruct(ir::InstId id) {
    Construct construct;
    construct.inst = id;
    construct.workgroup_level = true;
    construct.merge = NewBlock("merge");
    constructs_.push_back(construct);
    return constructs_.back();
}

void Emitter::EmitWorkgroupConstruct(ir::InstId id) {
    const ExplainRecorder::Scope recorded(recorder_, id, epoch_, false, true);
    const ir::Instruction& inst = kernel_.inst(id);
    PushWorkgroupConstruct(id);
    BasicBlock* merge = constructs_.back().merge;
    auto condition = [&]() -> Value* {
        ir::ValueId operand = inst.operands[0];
        if (regions_.home(operand) == Home::kWorkgroup) {
            return Raw(operand);
        }
        llvm::AllocaInst* kept = conditions_[id.index];
        return builder_.CreateLoad(kept->getAllocatedType(), kept);
    };
    auto body = [&](ir::BlockId block, BasicBlock* start) {
        builder_.SetInsertPoint(start);
        EmitWorkgroupBlock(block);
        BranchTo(merge);
    };
    switch (inst.op) {
        case Op::kIf: {
            BasicBlock* then = NewBlock("then");
            BasicBlock* otherwise = NewBlock("else");
            builder_.CreateCondBr(condition(), then, otherwise);
            body(inst.blocks[0], then);
            body(inst.blocks[1], otherwise);
            break;
        }
        case Op::kSwitch: {
            Value* selector = condition();
            BasicBlock* otherwise = NewBlock("default");
            auto* branch = builder_.CreateSwitch(selector, otherwise);
            for (size_t i = 1; i < inst.blocks.size(); ++i) {
                BasicBlock* start = NewBlock("case");
                branch->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(
                                    selector->getType(), inst.case_values[i - 1])),
                                start);
                body(inst.blocks[i], start);
            }
            body(inst.blocks[0], otherwise);
            break;
        }
        case Op::kScope: {
            BasicBlock* start = NewBlock("scope");
            BranchTo(start);
            body(inst.blocks[0], start);
            break;
        }
        default: {
            BasicBlock* header = NewBlock("loop");
            BasicBlock* continuing = NewBlock("continuing");
            constructs_.back().continuing = continuing;
            ShareLoopSlots(inst);
            std::span<const ir::ValueId> params = kernel_.block(inst.blocks[0]).params;
            for (size_t i = 0; i < params.size(); ++i) {
                if (regions_.home(params[i]) == Home::kWorkgroup &&
                    regions_.home(inst.operands[i]) == Home::kWorkgroup) {
                    StoreHome(params[i], Convert(inst.operands[i], params[i]));
                }
            }
            builder_.CreateBr(header);
            builder_.SetInsertPoint(header);
            for (ir::ValueId param : params) {
                if (regions_.home(param) == Home::kWorkgroup) {
                    Set(param, LoadHome(param));
                }
            }
            EmitWorkgroupBlock(inst.blocks[0]);
            BranchTo(continuing);
            builder_.SetInsertPoint(continuing);
            for (ir::ValueId param : kernel_.block(inst.blocks[1]).params) {
                if (regions_.home(param) == Home::kWorkgroup) {
                    Set(param, LoadHome(param));
                }
            }
            EmitWorkgroupBlock(inst.blocks[1]);
            BranchTo(header);
            break;
        }
    }
    constructs_.pop_back();
    builder_.SetInsertPoint(merge);
    for (ir::ValueId result : inst.results) {
        if (regions_.home(result) == Home::kWorkgroup) {
            Set(result, LoadHome(result));
        }
    }
}

void Emitter::TransferTargets(ir::InstId id, std::span<const ir::ValueId>& into) {
    const ir::Instruction& inst = kernel_.inst(id);
    switch (inst.op) {
        case Op::kLoop:
            into = kernel_.block(inst.blocks[0]).params;
            return;
        case Op::kNext:
            into = kernel_.block(kernel_.inst(constructs_.back().inst).blocks[0]).params;
            return;
        case Op::kYield:
            into = kernel_.inst(constructs_.back().inst).results;
            return;
        case Op::kContinue:
            into = kernel_.block(kernel_.inst(inst.target).blocks[1]).params;
            return;
        default:
            into = kernel_.inst(inst.target).results;
            return;
    }
}

void Emitter::EmitWorkgroupTerminator(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    if (inst.op == Op::kReturn || inst.op == Op::kUnreachable) {
        BranchTo(workgroup_end_);
        return;
    }
    std::span<const ir::ValueId> into;
    TransferTargets(id, into);
    for (size_t i = 0; i < inst.operands.size(); ++i) {
        if (regions_.home(into[i]) == Home::kWorkgroup &&
            regions_.home(inst.operands[i]) == Home::kWorkgroup) {
            StoreHome(into[i], Convert(inst.operands[i], into[i]));
        }
    }
    switch (inst.op) {
        case Op::kExit:
            BranchTo(FindConstruct(inst.target).merge);
            return;
        case Op::kContinue:
            BranchTo(FindConstruct(inst.target).continuing);
            return;
        default:
            return;  // yield and next fall through
    }
}

void Emitter::EmitSegment(uint32_t index) {
    const SegmentLayouts::Layout* layout = layouts_.Find(index);
    if (!layout) {
        EmitSegmentLoop(index, nullptr);
        return;
    }
    const ShapeAnalysis& own = shapes_.get();
    std::vector<Held> held;
    for (ir::ValueId value : layout->recomputed) {
        held.push_back(held_[value.index]);
    }
    UseShapes(*layout->shapes);
    own_map_ = false;
    recorder_.BeginSegmentMap(index, *layout->shapes);
    EmitSegmentLoop(index, layout);
    recorder_.EndSegmentMap(own);
    own_map_ = true;
    UseShapes(own);
    for (size_t i = 0; i < held.size(); ++i) {
        held_[layout->recomputed[i].index] = held[i];
    }
}

void Emitter::EmitSegmentLoop(uint32_t index, const SegmentLayouts::Layout* layout) {
    epoch_ = index + 1;
    const Segment& segment = regions_.segment(index);
    segment_end_ = NewBlock("segment_end");
    // The workgroup ends when no invocation is left: none would make the conditions of the branches
    // and loops that follow.
    llvm::AllocaInst* left = nullptr;
    if (segment.returns && regions_.keeps_mask()) {
        left = NewAlloca(builder_.getIntNTy(lanes_), "left");
        builder_.CreateStore(llvm::Constant::getNullValue(left->getAllocatedType()), left);
    }
    if (matrices_) {
        matrices_->BeginSegment(index);
    }
    llvm::PHINode* counter = nullptr;
    BasicBlock* start = NewBlock("segment");
    BasicBlock* before = builder_.GetInsertBlock();
    BranchTo(start);
    builder_.SetInsertPoint(start);
    const uint32_t subgroups = SubgroupsWithWork(segment);
    if (subgroups == 1) {
        subgroup_ = builder_.getInt32(0);
    } else {
        counter = builder_.CreatePHI(builder_.getInt32Ty(), 2, "subgroup");
        counter->addIncoming(builder_.getInt32(0), before);
        subgroup_ = counter;
    }
    lane_base_ = builder_.CreateMul(subgroup_, builder_.getInt32(lanes_), "lane_base", true, true);
    mask_ = nullptr;
    if (workgroups_in_vector_) {
        llvm::SmallVector<int64_t, 64> workgroup_of;
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            workgroup_of.push_back(lane / (lanes_ / shapes_.map().workgroups));
        }
        mask_ = builder_.CreateICmpULT(LaneConstants(builder_.getInt32Ty(), workgroup_of),
                                       Splat(workgroups_in_vector_));
    } else if (invocations_ % lanes_ != 0) {
        llvm::SmallVector<int64_t, 64> lane_numbers;
        for (uint32_t lane = 0; lane < lanes_; ++lane) {
            lane_numbers.push_back(lane);
        }
        Value* index_of_lane = builder_.CreateAdd(
            Splat(lane_base_), LaneConstants(builder_.getInt32Ty(), lane_numbers));
        mask_ = builder_.CreateICmpULT(index_of_lane, Splat(builder_.getInt32(invocations_)));
    }
    if (regions_.keeps_mask()) {
        Value* bits = builder_.CreateLoad(builder_.getIntNTy(lanes_), KeptMaskPointer());
        BasicBlock* run = NewBlock("segment_live");
        builder_.CreateCondBr(
            builder_.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0)), run,
            segment_end_);
        builder_.SetInsertPoint(run);
        mask_ =
            lanes_ == 1 ? nullptr : builder_.CreateBitCast(bits, VectorOf(builder_.getInt1Ty()));
    }
    segment_ = &segment;
    imported_ = 0;
    if (layout) {
        for (ir::ValueId value : layout->recomputed) {
            const ir::Instruction& inst = *kernel_.Definition(value);
            for (ir::ValueId operand : inst.operands) {
                Import(operand);
            }
            EmitPure(inst);
        }
    }
    if (prefetches_ && own_map_) {
        EmitPrefetches(index);
    }
    if (workgroups_in_vector_ && WorthCopying(segment.items)) {
        // Rows of workgroups have one end, so nearly all vectors are full.
        Value* together = builder_.getInt32(shapes_.map().workgroups);
        EmitItemsUnmasked(segment.items, builder_.CreateICmpEQ(workgroups_in_vector_, together));
    }
    EmitItems(segment.items);
    if (matrices_) {
        matrices_->EndSegment();
    }
    BranchTo(segment_end_);
    builder_.SetInsertPoint(segment_end_);
    if (left) {
        llvm::Type* type = left->getAllocatedType();
        builder_.CreateStore(builder_.CreateOr(builder_.CreateLoad(type, left),
                                               builder_.CreateLoad(type, KeptMaskPointer())),
                             left);
    }
    if (counter) {
        Value* next = builder_.CreateAdd(counter, builder_.getInt32(1), "", true, true);
        counter->addIncoming(next, segment_end_);
        BasicBlock* after = NewBlock("after_segment");
        builder_.CreateCondBr(builder_.CreateICmpULT(next, builder_.getInt32(subgroups)), start,
                              after);
        builder_.SetInsertPoint(after);
    }
    if (left) {
        llvm::Type* type = left->getAllocatedType();
        BasicBlock* live = NewBlock("left");
        builder_.CreateCondBr(builder_.CreateICmpNE(builder_.CreateLoad(type, left),
                                                    llvm::Constant::getNullValue(type)),
                              live, workgroup_end_);
        builder_.SetInsertPoint(live);
    }
    mask_ = nullptr;
    segment_ = nullptr;
    segment_end_ = nullptr;
}

void Emitter::EmitItems(std::span<const SegmentItem> items) {
    UnmaskMatrices(items);
    for (size_t i = 0; i < items.size() && !Terminated(); ++i) {
        if (matrices_ && items[i].kind != SegmentItem::Kind::kInstruction) {
            matrices_->Flush();
        }
        const bool was_unmasked = !mask_;
        ImportUntil(items[i].imports_end);
        const bool tested = was_unmasked && EmitRestIfAllStay(items.subspan(i));
        EmitSegmentItem(items[i]);
        if (items[i].kind != SegmentItem::Kind::kInstruction || i + 1 == items.size() ||
            Terminated()) {
            continue;
        }
        const ir::Instruction& inst = kernel_.inst(items[i].inst);
        if (inst.blocks.empty() || !shapes_.facts(items[i].inst).loses_lanes) {
            continue;
        }
        // Lanes may be gone: skip the rest of the segment if none is left and it has work to skip.
        std::span<const SegmentItem> rest = items.subspan(i + 1);
        if (was_unmasked && !tested && inst.op == Op::kIf && IsEdgeTest(inst.operands[0]) &&
            WorthCopying(rest)) {
            Value* bits = MaskBits(Mask());
            EmitItemsUnmasked(rest, builder_.CreateICmpEQ(
                                        bits, llvm::Constant::getAllOnesValue(bits->getType())));
        }
        BasicBlock* live = NewBlock("rest");
        EmitMaybe(Any(Mask()), live, segment_end_, true);
        builder_.SetInsertPoint(live);
    }
    if (matrices_ && !Terminated()) {
        matrices_->Flush();
    }
}

// For `if (position >= bound) return;` and what follows: emits the latter without masks where one
// scalar comparison says that every lane stays, and leaves the general form to the caller.
bool Emitter::EmitRestIfAllStay(std::span<const SegmentItem> items) {
    const ir::Instruction& inst = kernel_.inst(items[0].inst);
    if (items[0].kind != SegmentItem::Kind::kInstruction || inst.op != Op::kIf ||
        !inst.results.empty() || !IsEdgeTest(inst.operands[0]) || !WorthCopying(items.subspan(1))) {
        return false;
    }
    auto is_only = [&](ir::BlockId block, Op op) {
        std::span<const ir::InstId> insts = kernel_.block(block).insts;
        return insts.size() == 1 && kernel_.inst(insts[0]).op == op;
    };
    if (!is_only(inst.blocks[0], Op::kReturn) || !is_only(inst.blocks[1], Op::kYield)) {
        return false;
    }
    Value* some = TestLanes(inst.operands[0]).some;
    if (!some) {
        return false;
    }
    EmitItemsUnmasked(items.subspan(1), builder_.CreateNot(some));
    return true;
}

// The items without masks where `all` says that every lane is there; what follows is for the
// others.
void Emitter::EmitItemsUnmasked(std::span<const SegmentItem> items, Value* all) {
    ImportUntil(segment_->imports.size());  // for both forms
    BasicBlock* full = NewBlock("all_lanes");
    BasicBlock* some = NewBlock("some_lanes");
    EmitMaybe(all, full, some, true);
    builder_.SetInsertPoint(full);
    {
        const MaskScope unmasked(*this, nullptr);
        EmitItems(items);
        BranchTo(segment_end_);
    }
    builder_.SetInsertPoint(some);
}

bool Emitter::WorthCopying(std::span<const SegmentItem> items) const {
    uint32_t count = 0;
    for (const SegmentItem& item : items) {
        ++count;
        for (ir::BlockId block : kernel_.inst(item.inst).blocks) {
            count += CountInstructions(block);
        }
    }
    return lanes_ > 1 && count <= kMaxCopiedInstructions;
}

void Emitter::EmitSegmentItem(const SegmentItem& item) {
    const ir::Instruction& inst = kernel_.inst(item.inst);
    switch (item.kind) {
        case SegmentItem::Kind::kInstruction:
            EmitInstruction(item.inst);
            if (!Terminated()) {
                for (ir::ValueId result : inst.results) {
                    KeepAcrossSegments(result);
                }
            }
            return;
        case SegmentItem::Kind::kCondition: {
            // Uniform by the rules of the barrier that it governs: any active lane's value serves.
            Value* value = shapes_.shape(inst.operands[0]).uniform()
                               ? Raw(inst.operands[0])
                               : FromFirstActive(inst.operands[0]);
            llvm::AllocaInst*& kept = conditions_[item.inst.index];
            if (!kept) {
                kept = NewAlloca(value->getType(), "condition");
            }
            builder_.CreateStore(value, kept);
            return;
        }
        case SegmentItem::Kind::kTransfer:
            EmitTransfer(item.inst);
            return;
    }
}

void Emitter::EmitTransfer(ir::InstId id) {
    const ir::Instruction& inst = kernel_.inst(id);
    std::span<const ir::ValueId> into;
    TransferTargets(id, into);
    // A parallel copy: all are read before the first is written.
    llvm::SmallVector<Value*, 8> values;
    for (size_t i = 0; i < into.size(); ++i) {
        values.push_back(Convert(inst.operands[i], into[i]));
    }
    for (size_t i = 0; i < into.size(); ++i) {
        if (regions_.home(into[i]) == Home::kWorkgroup &&
            regions_.home(inst.operands[i]) == Home::kWorkgroup) {
            continue;  // copied at workgroup level
        }
        if (SlotOwner(into[i]) == SlotOwner(inst.operands[i])) {
            continue;  // already there
        }
        StoreHome(into[i], values[i]);
    }
}

}  // namespace fornax::kernel
