// Values that live across barrier regions: spill slots in the workgroup's scratch memory, who
// shares one, and the masks that are kept there.
#pragma once

#include <vector>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/codegen/emit_memory.h"

namespace fornax::kernel {

class SpillSlots : FunctionPart {
  public:
    SpillSlots(FunctionCode& code,
               ValueCode& values,
               AccessEmitter& accesses,
               const BarrierRegions& regions)
        : FunctionPart(code),
          values_(values),
          accesses_(accesses),
          regions_(regions),
          slots_(code.kernel.num_values()),
          slot_owner_(code.kernel.num_values()) {}

    // Imports are those of this barrier region from here on.
    void Begin(const BarrierRegion& region);
    void ImportUntil(size_t end);
    void ImportAll() { ImportUntil(region_->imports.size()); }
    void Import(ir::ValueId value);
    void KeepAcrossRegions(ir::ValueId value);
    llvm::Value* LoadSlot(ir::ValueId value);
    void StoreSlot(ir::ValueId value, llvm::Value* raw);
    void ShareLoopSlots(const ir::Instruction& loop);
    uint32_t SlotOwner(ir::ValueId value) const;
    llvm::Value* KeptMaskPointer();
    void EmitKeptMaskInit();

  private:
    struct Slot {
        llvm::AllocaInst* alloca = nullptr;
        uint32_t offset = UINT32_MAX;  // in scratch
        uint32_t stride = 0;           // bytes a subgroup
    };

    llvm::Value* SlotPointer(ir::ValueId value);
    int64_t LastUse(ir::BlockId block, ir::ValueId value) const;

    ValueCode& values_;
    AccessEmitter& accesses_;
    const BarrierRegions& regions_;
    std::vector<Slot> slots_;              // by value
    std::vector<ir::ValueId> slot_owner_;  // by value: whose slot it shares, invalid for its own
    Slot kept_mask_;
    const BarrierRegion* region_ = nullptr;
    size_t imported_ = 0;  // of its imports
};

}  // namespace fornax::kernel
