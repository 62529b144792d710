// Operations between the lanes of a subgroup, which is one vector: masks become integers,
// reductions and scans take a logarithmic number of shuffles, with the identity where no lane is
// active. They are never reached with an empty mask (NeedsGuard), and the mask is exactly the lanes
// that run the operation together.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <span>
#include <utility>

#include "compiler/kernel/codegen/emit_values.h"
#include "compiler/kernel/codegen/memory_code.h"
#include "compiler/kernel/codegen/memory_regions.h"

namespace fornax::kernel {

class SubgroupEmitter : FunctionPart {
  public:
    SubgroupEmitter(FunctionCode& code,
                    MemoryCode& memory,
                    ValueCode& values,
                    MemoryRegions& memory_regions)
        : FunctionPart(code), memory_(memory), values_(values), memory_regions_(memory_regions) {}

    void EmitSubgroup(const ir::Instruction& inst);
    void UnmaskMatrices(std::span<const ir::InstId> insts);
    void UnmaskMatrices(std::span<const RegionItem> items);

  private:
    void EmitMatrix(const ir::Instruction& inst);
    void EmitMatrixLoad(const ir::Instruction& inst);
    void EmitShuffle(const ir::Instruction& inst);
    void EmitGroup(const ir::Instruction& inst);
    void EmitPartitioned(const ir::Instruction& inst);
    llvm::Value* EmitPartition(const ir::Instruction& inst);
    llvm::Value* Ballot(ir::ValueId condition);  // i64
    // Lanes that are not there count as the identity; gives a vector, or a scalar for a reduction
    // of all.
    llvm::Value* Combined(const ir::Instruction& inst, llvm::Value* values, llvm::Value* mask);
    llvm::Value* ExtractLane(llvm::Value* vector, llvm::Value* lane);  // a lane that exists
    llvm::Value* ShuffleConstant(llvm::Value* vector, llvm::ArrayRef<int> lanes);
    // Runs `body` with a lane and the lanes left, for the first of the lanes left until it has
    // taken all away; threads one vector through.
    using SetBody = llvm::function_ref<std::pair<llvm::Value*, llvm::Value*>(llvm::Value* lane,
                                                                             llvm::Value* so_far)>;
    llvm::Value* ForEachSet(llvm::Value* initial, SetBody body);

    MemoryCode& memory_;
    ValueCode& values_;
    MemoryRegions& memory_regions_;
};

}  // namespace fornax::kernel
