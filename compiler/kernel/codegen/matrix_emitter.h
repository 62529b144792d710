// Code for matrices that a subgroup holds together (ir/matrix.h). Here one is a few vectors, of a
// lane's elements each, which end to end are its rows.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <vector>

namespace fornax::kernel {

class MatrixEmitter {
  public:
    // `entry` takes the memory that is needed.
    MatrixEmitter(llvm::IRBuilder<>& builder, llvm::BasicBlock& entry, uint32_t vector_bits)
        : b_(builder), entry_(entry), vector_bits_(vector_bits) {}

    // `operands`: three matrices, one after the other; `flags`: ir::MatrixFlags.
    std::vector<llvm::Value*> MulAdd(llvm::ArrayRef<llvm::Value*> operands, uint64_t flags);
    std::vector<llvm::Value*> Transpose(llvm::ArrayRef<llvm::Value*> matrix);

  private:
    using Vectors = std::vector<llvm::Value*>;
    Vectors Regroup(llvm::ArrayRef<llvm::Value*> vectors, unsigned width);
    llvm::Value* Slot(uint32_t which);
    void Store(llvm::ArrayRef<llvm::Value*> matrix, uint32_t slot);
    Vectors Factors(llvm::ArrayRef<llvm::Value*> matrix, uint64_t flags, bool is_signed);
    Vectors AlternateRows(llvm::ArrayRef<llvm::Value*> matrix);
    llvm::Value* AddSaturating(llvm::Value* sum, llvm::Value* products, uint64_t flags);

    llvm::IRBuilder<>& b_;
    llvm::BasicBlock& entry_;
    const uint32_t vector_bits_;
    llvm::AllocaInst* slots_[3] = {};  // memory for a matrix each
};

}  // namespace fornax::kernel
