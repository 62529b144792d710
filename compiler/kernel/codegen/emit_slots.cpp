#include "compiler/kernel/codegen/emit_slots.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace fornax::kernel {

using ir::Op;
using llvm::BasicBlock;
using llvm::Value;
using Storage = BarrierRegions::Storage;

void SpillSlots::Begin(const BarrierRegion& region) {
    region_ = &region;
    imported_ = 0;
}

// Values come from their spill slots where the first item needs them, so that they wait in memory
// rather than in registers.
void SpillSlots::ImportUntil(size_t end) {
    while (imported_ < end) {
        Import(region_->imports[imported_++]);
    }
}

void SpillSlots::Import(ir::ValueId value) {
    if (values_.held(value).epoch == code_.epoch) {
        return;
    }
    if (patterns_.pattern(value).has_rows()) {
        Import(patterns_.pattern(value).stride);
    }
    switch (regions_.storage(value)) {
        case Storage::kWorkgroup:
            return;
        case Storage::kRegion:
            assert(false && "a value of another region has no spill slot");
            return;
        case Storage::kWorkgroupSlot:
        case Storage::kSubgroupSlot:
            values_.Set(value, LoadSlot(value));
            return;
        case Storage::kRecomputed: {
            const ir::Instruction& inst = *kernel_.Definition(value);
            for (ir::ValueId operand : inst.operands) {
                Import(operand);
            }
            accesses_.EmitPure(inst);
            return;
        }
    }
}

void SpillSlots::KeepAcrossRegions(ir::ValueId value) {
    Storage storage = regions_.storage(value);
    if (storage == Storage::kWorkgroupSlot || storage == Storage::kSubgroupSlot) {
        StoreSlot(value, values_.Raw(value));
    }
}

// The places of a block, counted in its own instructions, at which `value` is used last, within
// constructs too; -1 if it is not. What is recomputed from it may be needed anywhere.
int64_t SpillSlots::LastUse(ir::BlockId block, ir::ValueId value) const {
    const std::vector<ir::InstId>& insts = kernel_.block(block).insts;
    int64_t last = -1;
    for (size_t i = 0; i < insts.size(); ++i) {
        const ir::Instruction& inst = kernel_.inst(insts[i]);
        bool used =
            std::find(inst.operands.begin(), inst.operands.end(), value) != inst.operands.end();
        if (used && std::any_of(inst.results.begin(), inst.results.end(), [&](ir::ValueId result) {
                return regions_.storage(result) == Storage::kRecomputed;
            })) {
            return INT64_MAX;
        }
        for (ir::BlockId child : inst.blocks) {
            const int64_t inside = LastUse(child, value);
            if (inside == INT64_MAX) {
                return inside;
            }
            used |= inside >= 0;
        }
        if (used) {
            last = static_cast<int64_t>(i);
        }
    }
    return last;
}

// What a loop carries goes from the body to the continuing block and back. Where `next` hands a
// parameter of the continuing block straight on to the body, both parameters can live in one slot
// if the body's value is dead once the continuing block's is written. The same slot serves the
// value that `continue` hands to that parameter, if the body's is dead once that one is made: then
// a sum that a loop adds to is never copied.
void SpillSlots::ShareLoopSlots(const ir::Instruction& loop) {
    std::span<const ir::ValueId> body = kernel_.block(loop.blocks[0]).params;
    const ir::Block& continuing = kernel_.block(loop.blocks[1]);
    const ir::Instruction& next = kernel_.inst(continuing.insts.back());
    if (next.op != Op::kNext) {
        return;
    }
    auto may_share = [&](ir::ValueId value, ir::ValueId owner) {
        // A scalar may be a stride, whose uses are not all operands.
        return !slot_owner_[value.value()].valid() && patterns_.pattern(value).varying() &&
               regions_.storage(value) == Storage::kSubgroupSlot &&
               regions_.storage(owner) == Storage::kSubgroupSlot &&
               values_.RawType(value) == values_.RawType(owner);
    };
    const std::vector<ir::InstId>& insts = kernel_.block(loop.blocks[0]).insts;
    const ir::Instruction& end = kernel_.inst(insts.back());
    // Where the instruction of a block that makes the value stands in it.
    const auto made_at = [&](const std::vector<ir::InstId>& block, ir::ValueId value) {
        return std::find_if(block.begin(), block.end(), [&](ir::InstId id) {
            const std::vector<ir::ValueId>& results = kernel_.inst(id).results;
            return std::find(results.begin(), results.end(), value) != results.end();
        });
    };
    for (size_t i = 0; i < body.size(); ++i) {
        const ir::ValueId param = next.operands[i];
        const auto place = std::find(continuing.params.begin(), continuing.params.end(), param);
        if (place == continuing.params.end() && !slot_owner_[body[i].value()].valid()) {
            const auto definition = made_at(continuing.insts, param);
            if (definition != continuing.insts.end() && may_share(param, body[i]) &&
                LastUse(loop.blocks[1], body[i]) <= definition - continuing.insts.begin()) {
                slot_owner_[param.value()] = body[i];
            }
        }
        if (place == continuing.params.end() || !may_share(param, body[i]) ||
            slot_owner_[body[i].value()].valid() || LastUse(loop.blocks[1], body[i]) >= 0) {
            continue;
        }
        slot_owner_[param.value()] = body[i];
        if (end.op != Op::kContinue || &kernel_.inst(end.target) != &loop ||
            patterns_.facts(end.target).continue_sites != 1) {
            continue;
        }
        const ir::ValueId made =
            end.operands[static_cast<size_t>(place - continuing.params.begin())];
        const auto definition = made_at(insts, made);
        if (definition != insts.end() && may_share(made, body[i]) &&
            LastUse(loop.blocks[0], body[i]) <= definition - insts.begin()) {
            slot_owner_[made.value()] = body[i];
        }
    }
}

uint32_t SpillSlots::SlotOwner(ir::ValueId value) const {
    const ir::ValueId owner = slot_owner_[value.value()];
    return owner.valid() ? owner.value() : value.value();
}

Value* SpillSlots::SlotPointer(ir::ValueId value) {
    Slot& slot = slots_[SlotOwner(value)];
    llvm::Type* type = values_.RawType(value);
    bool per_subgroup = regions_.storage(value) == Storage::kSubgroupSlot && code_.subgroups > 1;
    if (!per_subgroup) {
        if (!slot.alloca) {
            slot.alloca = code_.NewAlloca(type, "spill");
        }
        return slot.alloca;
    }
    if (slot.offset == UINT32_MAX) {
        uint64_t bytes = code_.module.getDataLayout().getTypeAllocSize(type);
        bytes = (bytes + 7) & ~uint64_t{7};
        slot.stride = static_cast<uint32_t>(bytes);
        slot.offset = code_.AllocateScratch(bytes * code_.subgroups);
    }
    Value* offset = builder_.CreateAdd(
        builder_.CreateMul(builder_.CreateZExt(code_.subgroup, builder_.getInt64Ty()),
                           builder_.getInt64(slot.stride)),
        builder_.getInt64(slot.offset));
    return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), code_.scratch, offset);
}

Value* SpillSlots::LoadSlot(ir::ValueId value) {
    auto* load =
        builder_.CreateAlignedLoad(values_.RawType(value), SlotPointer(value), llvm::Align(4));
    if (!slots_[SlotOwner(value)].alloca) {
        load->setMetadata(llvm::LLVMContext::MD_alias_scope, code_.scopes[2]);
        load->setMetadata(llvm::LLVMContext::MD_noalias, code_.noalias[2]);
    }
    return load;
}

void SpillSlots::StoreSlot(ir::ValueId value, Value* raw) {
    auto* store = builder_.CreateAlignedStore(raw, SlotPointer(value), llvm::Align(4));
    if (!slots_[SlotOwner(value)].alloca) {
        store->setMetadata(llvm::LLVMContext::MD_alias_scope, code_.scopes[2]);
        store->setMetadata(llvm::LLVMContext::MD_noalias, code_.noalias[2]);
    }
}

Value* SpillSlots::KeptMaskPointer() {
    if (kept_mask_.offset == UINT32_MAX) {
        kept_mask_.offset = code_.AllocateScratch(uint64_t{8} * code_.subgroups);
    }
    Value* offset = builder_.CreateAdd(
        builder_.CreateMul(builder_.CreateZExt(code_.subgroup, builder_.getInt64Ty()),
                           builder_.getInt64(8)),
        builder_.getInt64(kept_mask_.offset));
    return builder_.CreateInBoundsGEP(builder_.getInt8Ty(), code_.scratch, offset);
}

void SpillSlots::EmitKeptMaskInit() {
    if (!regions_.keeps_mask()) {
        return;
    }
    for (uint32_t i = 0; i < code_.subgroups; ++i) {
        code_.subgroup = builder_.getInt32(i);
        uint32_t active = std::min(code_.lanes, code_.invocations - i * code_.lanes);
        uint64_t bits = active == 64 ? UINT64_MAX : (uint64_t{1} << active) - 1;
        builder_.CreateStore(llvm::ConstantInt::get(builder_.getIntNTy(code_.lanes), bits),
                             KeptMaskPointer());
    }
}

}  // namespace fornax::kernel
