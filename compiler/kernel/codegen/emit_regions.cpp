// Workgroup-level control flow and the regions between barriers. Regions run for one subgroup
// after the other; what lives from one to another has a spill slot outside them.
#include <algorithm>
#include <cassert>
#include <utility>

#include "compiler/kernel/codegen/emitter.h"
#include "compiler/kernel/codegen/matrix_emitter.h"
#include "compiler/kernel/codegen/pure_ops.h"
#include "compiler/kernel/ir/any_inside.h"

namespace fornax::kernel {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;
using Storage = BarrierRegions::Storage;

namespace {

// Code without loops that is worth having twice. With loops, what is live around them is too much
// for LLVM 19 (ControlEmitter::kMaxCopiedInstructions).
constexpr uint32_t kMaxCopiedStraightInstructions = 320;

}  // namespace

void Emitter::EmitWorkgroupBlock(ir::BlockId block) {
    code_.epoch = 0;
    for (const Step& step : regions_.steps(block)) {
        switch (step.kind) {
            case Step::Kind::kHoisted:
                accesses_.EmitPure(kernel_.inst(step.inst));
                break;
            case Step::Kind::kRegion:
                EmitRegion(step.region);
                code_.epoch = 0;
                break;
            case Step::Kind::kConstruct:
                EmitWorkgroupConstruct(step.inst);
                break;
            case Step::Kind::kTerminator:
                EmitWorkgroupTerminator(step.inst);
                break;
        }
        if (code_.Terminated()) {
            return;
        }
    }
}

Construct& Emitter::PushWorkgroupConstruct(ir::InstId id) {
    Construct construct;
    construct.inst = id;
    construct.workgroup_level = true;
    construct.merge = code_.NewBlock("merge");
    code_.constructs.push_back(construct);
    return code_.constructs.back();
}

void Emitter::EmitWorkgroupConstruct(ir::InstId id) {
    const ExplainRecorder::Scope recorded(recorder_, id, code_.epoch, false, true);
    const ir::Instruction& inst = kernel_.inst(id);
    PushWorkgroupConstruct(id);
    BasicBlock* merge = code_.constructs.back().merge;
    auto condition = [&]() -> Value* {
        ir::ValueId operand = inst.operands[0];
        if (regions_.storage(operand) == Storage::kWorkgroup) {
            return values_.Raw(operand);
        }
        llvm::AllocaInst* kept = conditions_[id.value()];
        return builder_.CreateLoad(kept->getAllocatedType(), kept);
    };
    auto body = [&](ir::BlockId block, BasicBlock* start) {
        builder_.SetInsertPoint(start);
        EmitWorkgroupBlock(block);
        code_.BranchTo(merge);
    };
    switch (inst.op) {
        case Op::kIf: {
            BasicBlock* then = code_.NewBlock("then");
            BasicBlock* otherwise = code_.NewBlock("else");
            builder_.CreateCondBr(condition(), then, otherwise);
            body(inst.blocks[0], then);
            body(inst.blocks[1], otherwise);
            break;
        }
        case Op::kSwitch: {
            Value* selector = condition();
            BasicBlock* otherwise = code_.NewBlock("default");
            auto* branch = builder_.CreateSwitch(selector, otherwise);
            for (size_t i = 1; i < inst.blocks.size(); ++i) {
                BasicBlock* start = code_.NewBlock("case");
                branch->addCase(llvm::cast<llvm::ConstantInt>(llvm::ConstantInt::get(
                                    selector->getType(), inst.case_values[i - 1])),
                                start);
                body(inst.blocks[i], start);
            }
            body(inst.blocks[0], otherwise);
            break;
        }
        case Op::kScope: {
            BasicBlock* start = code_.NewBlock("scope");
            code_.BranchTo(start);
            body(inst.blocks[0], start);
            break;
        }
        default: {
            BasicBlock* header = code_.NewBlock("loop");
            BasicBlock* continuing = code_.NewBlock("continuing");
            code_.constructs.back().continuing = continuing;
            spills_.ShareLoopSlots(inst);
            std::span<const ir::ValueId> params = kernel_.block(inst.blocks[0]).params;
            for (size_t i = 0; i < params.size(); ++i) {
                if (regions_.storage(params[i]) == Storage::kWorkgroup &&
                    regions_.storage(inst.operands[i]) == Storage::kWorkgroup) {
                    spills_.StoreSlot(params[i], values_.Convert(inst.operands[i], params[i]));
                }
            }
            builder_.CreateBr(header);
            builder_.SetInsertPoint(header);
            for (ir::ValueId param : params) {
                if (regions_.storage(param) == Storage::kWorkgroup) {
                    values_.Set(param, spills_.LoadSlot(param));
                }
            }
            EmitWorkgroupBlock(inst.blocks[0]);
            code_.BranchTo(continuing);
            builder_.SetInsertPoint(continuing);
            for (ir::ValueId param : kernel_.block(inst.blocks[1]).params) {
                if (regions_.storage(param) == Storage::kWorkgroup) {
                    values_.Set(param, spills_.LoadSlot(param));
                }
            }
            EmitWorkgroupBlock(inst.blocks[1]);
            code_.BranchTo(header);
            break;
        }
    }
    code_.constructs.pop_back();
    builder_.SetInsertPoint(merge);
    for (ir::ValueId result : inst.results) {
        if (regions_.storage(result) == Storage::kWorkgroup) {
            values_.Set(result, spills_.LoadSlot(result));
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
            into = kernel_.block(kernel_.inst(code_.constructs.back().inst).blocks[0]).params;
            return;
        case Op::kYield:
            into = kernel_.inst(code_.constructs.back().inst).results;
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
        code_.BranchTo(workgroup_end_);
        return;
    }
    std::span<const ir::ValueId> into;
    TransferTargets(id, into);
    for (size_t i = 0; i < inst.operands.size(); ++i) {
        if (regions_.storage(into[i]) == Storage::kWorkgroup &&
            regions_.storage(inst.operands[i]) == Storage::kWorkgroup) {
            spills_.StoreSlot(into[i], values_.Convert(inst.operands[i], into[i]));
        }
    }
    switch (inst.op) {
        case Op::kExit:
            code_.BranchTo(code_.FindConstruct(inst.target).merge);
            return;
        case Op::kContinue:
            code_.BranchTo(code_.FindConstruct(inst.target).continuing);
            return;
        default:
            return;  // yield and next fall through
    }
}

void Emitter::EmitRegion(uint32_t index) {
    const RegionLaneMaps::Layout* layout = layouts_.Find(index);
    if (!layout) {
        EmitRegionLoop(index, nullptr);
        return;
    }
    const LaneAnalysis& own = patterns_.get();
    std::vector<HeldValue> held;
    for (ir::ValueId value : layout->recomputed) {
        held.push_back(values_.held(value));
    }
    code_.UseLaneAnalysis(*layout->patterns);
    code_.own_map = false;
    recorder_.BeginRegionMap(index, *layout->patterns);
    EmitRegionLoop(index, layout);
    recorder_.EndRegionMap(own);
    code_.own_map = true;
    code_.UseLaneAnalysis(own);
    for (size_t i = 0; i < held.size(); ++i) {
        values_.Restore(layout->recomputed[i], held[i]);
    }
}

void Emitter::EmitRegionLoop(uint32_t index, const RegionLaneMaps::Layout* layout) {
    code_.epoch = index + 1;
    const BarrierRegion& region = regions_.region(index);
    code_.region_end = code_.NewBlock("region_end");
    // The workgroup ends when no invocation is left: none would make the conditions of the branches
    // and loops that follow.
    llvm::AllocaInst* left = nullptr;
    if (region.returns && regions_.keeps_mask()) {
        left = code_.NewAlloca(builder_.getIntNTy(code_.lanes), "left");
        builder_.CreateStore(llvm::Constant::getNullValue(left->getAllocatedType()), left);
    }
    if (code_.matrices) {
        code_.matrices->BeginRegion(index);
    }
    llvm::PHINode* counter = nullptr;
    BasicBlock* start = code_.NewBlock("region");
    BasicBlock* before = builder_.GetInsertBlock();
    code_.BranchTo(start);
    builder_.SetInsertPoint(start);
    const uint32_t subgroups = control_.SubgroupsWithWork(region);
    if (subgroups == 1) {
        code_.subgroup = builder_.getInt32(0);
    } else {
        counter = builder_.CreatePHI(builder_.getInt32Ty(), 2, "subgroup");
        counter->addIncoming(builder_.getInt32(0), before);
        code_.subgroup = counter;
    }
    code_.lane_base =
        builder_.CreateMul(code_.subgroup, builder_.getInt32(code_.lanes), "lane_base", true, true);
    code_.mask = nullptr;
    if (code_.workgroups_in_vector) {
        llvm::SmallVector<int64_t, 64> workgroup_of;
        for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
            workgroup_of.push_back(lane / (code_.lanes / patterns_.map().workgroups));
        }
        code_.mask =
            builder_.CreateICmpULT(code_.LaneConstants(builder_.getInt32Ty(), workgroup_of),
                                   code_.Splat(code_.workgroups_in_vector));
    } else if (code_.invocations % code_.lanes != 0) {
        llvm::SmallVector<int64_t, 64> lane_numbers;
        for (uint32_t lane = 0; lane < code_.lanes; ++lane) {
            lane_numbers.push_back(lane);
        }
        Value* index_of_lane = builder_.CreateAdd(
            code_.Splat(code_.lane_base), code_.LaneConstants(builder_.getInt32Ty(), lane_numbers));
        code_.mask = builder_.CreateICmpULT(index_of_lane,
                                            code_.Splat(builder_.getInt32(code_.invocations)));
    }
    if (regions_.keeps_mask()) {
        Value* bits =
            builder_.CreateLoad(builder_.getIntNTy(code_.lanes), spills_.KeptMaskPointer());
        BasicBlock* run = code_.NewBlock("region_live");
        builder_.CreateCondBr(
            builder_.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0)), run,
            code_.region_end);
        builder_.SetInsertPoint(run);
        code_.mask = code_.lanes == 1
                         ? nullptr
                         : builder_.CreateBitCast(bits, code_.VectorOf(builder_.getInt1Ty()));
    }
    spills_.Begin(region);
    if (layout) {
        for (ir::ValueId value : layout->recomputed) {
            const ir::Instruction& inst = *kernel_.Definition(value);
            for (ir::ValueId operand : inst.operands) {
                spills_.Import(operand);
            }
            accesses_.EmitPure(inst);
        }
    }
    if (prefetches_ && code_.own_map) {
        EmitPrefetches(index);
    }
    if (code_.workgroups_in_vector && WorthCopying(region.items)) {
        // Rows of workgroups have one end, so nearly all vectors are full.
        Value* together = builder_.getInt32(patterns_.map().workgroups);
        EmitItemsUnmasked(region.items,
                          builder_.CreateICmpEQ(code_.workgroups_in_vector, together));
    }
    EmitItems(region.items);
    if (code_.matrices) {
        code_.matrices->EndRegion();
    }
    code_.BranchTo(code_.region_end);
    builder_.SetInsertPoint(code_.region_end);
    if (left) {
        llvm::Type* type = left->getAllocatedType();
        builder_.CreateStore(
            builder_.CreateOr(builder_.CreateLoad(type, left),
                              builder_.CreateLoad(type, spills_.KeptMaskPointer())),
            left);
    }
    if (counter) {
        Value* next = builder_.CreateAdd(counter, builder_.getInt32(1), "", true, true);
        counter->addIncoming(next, code_.region_end);
        BasicBlock* after = code_.NewBlock("after_region");
        builder_.CreateCondBr(builder_.CreateICmpULT(next, builder_.getInt32(subgroups)), start,
                              after);
        builder_.SetInsertPoint(after);
    }
    if (left) {
        llvm::Type* type = left->getAllocatedType();
        BasicBlock* live = code_.NewBlock("left");
        builder_.CreateCondBr(builder_.CreateICmpNE(builder_.CreateLoad(type, left),
                                                    llvm::Constant::getNullValue(type)),
                              live, workgroup_end_);
        builder_.SetInsertPoint(live);
    }
    code_.mask = nullptr;
    code_.region_end = nullptr;
}

void Emitter::EmitItems(std::span<const RegionItem> items) {
    subgroups_.UnmaskMatrices(items);
    for (size_t i = 0; i < items.size() && !code_.Terminated(); ++i) {
        if (code_.matrices && items[i].kind != RegionItem::Kind::kInstruction) {
            code_.matrices->Flush();
        }
        const bool was_unmasked = !code_.mask;
        spills_.ImportUntil(items[i].imports_end);
        const bool tested = was_unmasked && EmitRestIfAllStay(items.subspan(i));
        EmitRegionItem(items[i]);
        if (items[i].kind != RegionItem::Kind::kInstruction || i + 1 == items.size() ||
            code_.Terminated()) {
            continue;
        }
        const ir::Instruction& inst = kernel_.inst(items[i].inst);
        if (inst.blocks.empty() || !patterns_.facts(items[i].inst).loses_lanes) {
            continue;
        }
        // Lanes may be gone: skip the rest of the region if none is left and it has work to skip.
        std::span<const RegionItem> rest = items.subspan(i + 1);
        if (was_unmasked && !tested && inst.op == Op::kIf &&
            control_.IsOutsideTest(inst.operands[0]) && WorthCopying(rest)) {
            Value* bits = code_.MaskBits(code_.Mask());
            EmitItemsUnmasked(rest, builder_.CreateICmpEQ(
                                        bits, llvm::Constant::getAllOnesValue(bits->getType())));
        }
        BasicBlock* live = code_.NewBlock("rest");
        code_.EmitMaybe(code_.Any(code_.Mask()), live, code_.region_end, true);
        builder_.SetInsertPoint(live);
    }
    if (code_.matrices && !code_.Terminated()) {
        code_.matrices->Flush();
    }
}

// For `if (position >= bound) return;` and what follows, also of several bounds: emits the latter
// without masks where scalar comparisons say that every lane stays, and leaves the general form to
// the caller.
bool Emitter::EmitRestIfAllStay(std::span<const RegionItem> items) {
    const ir::Instruction& inst = kernel_.inst(items[0].inst);
    if (items[0].kind != RegionItem::Kind::kInstruction || inst.op != Op::kIf ||
        !inst.results.empty() || !control_.IsOutsideTest(inst.operands[0]) ||
        !WorthCopying(items.subspan(1))) {
        return false;
    }
    auto is_only = [&](ir::BlockId block, Op op) {
        std::span<const ir::InstId> insts = kernel_.block(block).insts;
        return insts.size() == 1 && kernel_.inst(insts[0]).op == op;
    };
    if (!is_only(inst.blocks[0], Op::kReturn) || !is_only(inst.blocks[1], Op::kYield)) {
        return false;
    }
    Value* any = control_.AnyOutside(inst.operands[0]);
    if (!any) {
        return false;
    }
    EmitItemsUnmasked(items.subspan(1), builder_.CreateNot(any));
    return true;
}

// The items without masks where `all` says that every lane is there; what follows is for the
// others.
void Emitter::EmitItemsUnmasked(std::span<const RegionItem> items, Value* all) {
    spills_.ImportAll();  // for both forms
    BasicBlock* unmasked = code_.NewBlock("all_lanes");
    BasicBlock* some = code_.NewBlock("some_lanes");
    code_.EmitMaybe(all, unmasked, some, true);
    builder_.SetInsertPoint(unmasked);
    {
        const MaskScope unmasked(code_, nullptr);
        EmitItems(items);
        code_.BranchTo(code_.region_end);
    }
    builder_.SetInsertPoint(some);
}

bool Emitter::WorthCopying(std::span<const RegionItem> items) const {
    uint32_t count = 0;
    bool has_loops = false;
    for (const RegionItem& item : items) {
        ++count;
        has_loops |= ir::AnyInside(
            kernel_, item.inst, [](const ir::Instruction& inst) { return inst.op == Op::kLoop; });
        for (ir::BlockId block : kernel_.inst(item.inst).blocks) {
            count += control_.CountInstructions(block);
        }
    }
    const uint32_t most = has_loops || code_.compact ? ControlEmitter::kMaxCopiedInstructions
                                                     : kMaxCopiedStraightInstructions;
    return code_.lanes > 1 && count <= most;
}

void Emitter::EmitRegionItem(const RegionItem& item) {
    const ir::Instruction& inst = kernel_.inst(item.inst);
    switch (item.kind) {
        case RegionItem::Kind::kInstruction:
            control_.EmitInstruction(item.inst);
            if (!code_.Terminated()) {
                for (ir::ValueId result : inst.results) {
                    spills_.KeepAcrossRegions(result);
                }
            }
            return;
        case RegionItem::Kind::kCondition: {
            // Uniform by the rules of the barrier that it governs: any active lane's value serves.
            Value* value = patterns_.pattern(inst.operands[0]).uniform()
                               ? values_.Raw(inst.operands[0])
                               : values_.FromFirstActive(inst.operands[0]);
            llvm::AllocaInst*& kept = conditions_[item.inst.value()];
            if (!kept) {
                kept = code_.NewAlloca(value->getType(), "condition");
            }
            builder_.CreateStore(value, kept);
            return;
        }
        case RegionItem::Kind::kTransfer:
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
        values.push_back(values_.Convert(inst.operands[i], into[i]));
    }
    for (size_t i = 0; i < into.size(); ++i) {
        if (regions_.storage(into[i]) == Storage::kWorkgroup &&
            regions_.storage(inst.operands[i]) == Storage::kWorkgroup) {
            continue;  // copied at workgroup level
        }
        if (spills_.SlotOwner(into[i]) == spills_.SlotOwner(inst.operands[i])) {
            continue;  // already there
        }
        spills_.StoreSlot(into[i], values[i]);
    }
}

}  // namespace fornax::kernel
