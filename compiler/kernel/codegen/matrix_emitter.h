// Code for matrices that a subgroup holds together (ir/matrix.h). Here one is a few vectors, of a
// lane's elements each, which end to end are its rows.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/kernel/analysis/matrix_places.h"
#include "compiler/kernel/ir/ir.h"

namespace fornax::kernel {

class MatrixEmitter {
  public:
    using Vectors = std::vector<llvm::Value*>;

    // `entry` takes the memory that is needed.
    MatrixEmitter(const ir::Kernel& kernel,
                  llvm::IRBuilder<>& builder,
                  llvm::BasicBlock& entry,
                  uint32_t vector_bits)
        : b_(builder),
          entry_(entry),
          vector_bits_(vector_bits),
          in_place_(FindMatrixPlaces(kernel)) {}

    // `operands`: three matrices, one after the other. `masked`: lanes may be missing.
    Vectors MulAdd(const ir::Instruction& inst, llvm::ArrayRef<llvm::Value*> operands, bool masked);
    Vectors Transpose(llvm::ArrayRef<llvm::Value*> matrix);

  private:
    // What was made of a matrix in the current block, where it is found again.
    struct Made {
        Vectors from;
        uint64_t how = 0;
        llvm::Value* slot = nullptr;
        Vectors transposed;
    };
    Made* Find(llvm::ArrayRef<llvm::Value*> from, uint64_t how);
    Made& Add(llvm::ArrayRef<llvm::Value*> from, uint64_t how);

    Vectors Regroup(llvm::ArrayRef<llvm::Value*> vectors, unsigned width);
    llvm::Value* NewSlot();
    void Store(llvm::ArrayRef<llvm::Value*> matrix, llvm::Value* slot);
    llvm::Value* Packed(llvm::ArrayRef<llvm::Value*> matrix,
                        uint64_t flags,
                        bool is_b,
                        const llvm::Value* keep);
    Vectors Factors(llvm::ArrayRef<llvm::Value*> matrix, uint64_t flags, bool is_signed);
    Vectors AlternateRows(llvm::ArrayRef<llvm::Value*> matrix);
    llvm::Value* AddSaturating(llvm::Value* sum, llvm::Value* products, uint64_t flags);

    llvm::IRBuilder<>& b_;
    llvm::BasicBlock& entry_;
    const uint32_t vector_bits_;
    const std::set<uint32_t> in_place_;
    llvm::BasicBlock* block_ = nullptr;  // that `made_` is for
    std::vector<Made> made_;
    std::vector<llvm::Value*> slots_;  // memory for a factor each, taken in turn
    size_t next_slot_ = 0;
    llvm::Value* sum_slot_ = nullptr;
};

}  // namespace fornax::kernel
