// Vectors of any length: joined, cut, permuted, taken apart into words. Functions of their
// arguments.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace fornax::kernel::vectors {

using Values = llvm::SmallVector<llvm::Value*, 4>;

// A splat if the type is a vector.
llvm::Constant* Same(llvm::Type* type, uint64_t value);

// A power of two of vectors, end to end.
llvm::Value* JoinAll(llvm::IRBuilderBase& builder, llvm::ArrayRef<llvm::Value*> parts);
llvm::Value* Slice(llvm::IRBuilderBase& builder,
                   llvm::Value* vector,
                   unsigned first,
                   unsigned count);

// Element i of the result is element pick[i] of the parts, counted through all of them, or anything
// if that is negative. Made of shuffles of two registers
// of `vector_bits`.
llvm::Value* Permute(llvm::IRBuilderBase& builder,
                     uint32_t vector_bits,
                     llvm::ArrayRef<llvm::Value*> parts,
                     llvm::ArrayRef<int> pick);
std::vector<llvm::Value*> PermuteToRegisters(llvm::IRBuilderBase& builder,
                                             uint32_t vector_bits,
                                             llvm::ArrayRef<llvm::Value*> parts,
                                             llvm::ArrayRef<int> pick);

// Element i of lane l of the packed form, at l * count + i, is lane l of column i.
llvm::Value* Pack(llvm::IRBuilderBase& builder, llvm::ArrayRef<llvm::Value*> columns);
Values Unpack(llvm::IRBuilderBase& builder, llvm::Value* packed, size_t count);

// Element k of a run lies at byte `skip` + k * size of the words, which are `words[i]`'s lanes.
Values UnpackWords(llvm::IRBuilderBase& builder,
                   llvm::ArrayRef<llvm::Value*> words,
                   uint64_t skip,
                   llvm::Type* type,
                   size_t count);
// The elements as words of `bytes`, which must divide their size.
Values PackWords(llvm::IRBuilderBase& builder,
                 llvm::ArrayRef<llvm::Value*> elements,
                 uint64_t bytes);

}  // namespace fornax::kernel::vectors
