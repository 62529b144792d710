// Atomics. One address for all lanes: the lanes are combined, then one locked operation; each
// lane's old value follows from those before it. Anything else: a loop over the active lanes.
// Workgroup memory needs no lock, because one worker runs the whole workgroup.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include "compiler/kernel/codegen/emit_memory.h"

namespace fornax::kernel {

class AtomicEmitter : FunctionPart {
  public:
    AtomicEmitter(FunctionCode& code,
                  MemoryCode& memory,
                  ValueCode& values,
                  MemoryRegions& memory_regions,
                  AccessEmitter& accesses)
        : FunctionPart(code),
          memory_(memory),
          values_(values),
          memory_regions_(memory_regions),
          accesses_(accesses) {}

    void EmitAtomic(const ir::Instruction& inst);

  private:
    // Which memory an atomic is on, and how.
    struct AtomicPlace {
        ir::AtomicOp op;
        MemoryRegion region;
        bool shared = false;  // one thread runs the workgroup: no lock
        uint64_t bytes = 0;
    };
    llvm::Value* AtomicOnScalar(const AtomicPlace& place,
                                llvm::Value* offset,
                                llvm::Value* value,
                                llvm::Value* comparand);
    llvm::Value* LoopUntilExchanged(llvm::Value* address,
                                    llvm::Type* type,
                                    llvm::function_ref<llvm::Value*(llvm::Value*)> update);
    llvm::Value* Combine(ir::AtomicOp op, llvm::Value* old, llvm::Value* value);
    llvm::Value* ActiveOrNeutral(ir::AtomicOp op, llvm::Value* vector);
    llvm::Value* ReduceLanes(ir::AtomicOp op, ir::ValueId value);
    void AtomicOnUniform(const ir::Instruction& inst,
                         const AtomicPlace& place,
                         llvm::Value* offset,
                         ir::ValueId value);
    void AtomicByLane(const ir::Instruction& inst,
                      const AtomicPlace& place,
                      llvm::Value* offsets,
                      ir::ValueId value,
                      ir::ValueId comparand);

    MemoryCode& memory_;
    ValueCode& values_;
    MemoryRegions& memory_regions_;
    AccessEmitter& accesses_;
};

}  // namespace fornax::kernel
