// Code that transposes a matrix in vector registers.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>

#include "compiler/kernel/codegen/matrix_executors.h"

namespace fornax::kernel {

// Transposes sixteen rows of as many elements.
MatrixVectors TransposeMatrix(llvm::IRBuilder<>& b, MatrixVectors rows);

// The same as one value, a structure of the rows, which a function can return.
llvm::Value* TransposeMatrixAsOne(llvm::IRBuilder<>& b, llvm::ArrayRef<llvm::Value*> rows);

}  // namespace fornax::kernel
