// Multiply-accumulates of f32 matrices in the host's vector registers, of operands wherever they
// lie.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>

#include "compiler/kernel/codegen/matrix_executors.h"

namespace fornax::kernel {

// Calls the function that MatrixExecutor::MultiplyAdd describes. Elements are multiplied and added
// in the order of A's columns, with one rounding each where the host has fused multiply-adds.
void EmitFloatMmas(llvm::IRBuilder<>& builder,
                   llvm::ArrayRef<llvm::Value*> accumulators,
                   llvm::ArrayRef<MatrixOperand> operands);

// void(ptr to, ptr base, i64 size, offset, offset stride): 16 rows of 16 f32 each one after the
// other, from `offset` in a buffer on, `stride` bytes apart; elements outside of it are 0. Offsets
// are of the type `offset`, in which they wrap.
llvm::Function* MatrixCopyFunction(llvm::Module& module, llvm::Type* offset);

}  // namespace fornax::kernel
