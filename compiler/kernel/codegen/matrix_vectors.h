// Matrix multiply-accumulates in the host's vector registers.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>

#include "compiler/kernel/codegen/matrix_pack.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

// The form of A, or of B, that VectorMulAddFunction takes. `flags` is Instruction::imm of
// matrix_muladd.
OperandForm VectorForm(const llvm::Module& module,
                       hal::MatrixFormat format,
                       uint64_t flags,
                       bool is_b);

// How an accumulator gains a product: by f32 or i32 sums of what words of the packed panels hold.
enum class VectorStep : uint8_t { kFloats, kPairsOfShorts, kPairsOfBFloats };
VectorStep VectorStepOf(OperandForm form);

// void(ptr c..., ptr operands...): as TileMulAddFunction (matrix_tiles.h), of operands in the form
// that belongs to `step`. With `lines`, which VectorLines gave, an array of as many addresses is
// the last argument, each of which the function prefetches. With `stride_of_a`, the rows of A are
// so many bytes apart, and not packed.
llvm::Function* VectorMulAddFunction(llvm::Module& module,
                                     VectorStep step,
                                     unsigned side,
                                     unsigned steps,
                                     unsigned lines,
                                     uint32_t stride_of_a);
// How many of `count` lines the function prefetches: at most one in each of its innermost
// iterations.
unsigned VectorLines(const llvm::Module& module,
                     VectorStep step,
                     unsigned side,
                     unsigned steps,
                     size_t count);

}  // namespace fornax::kernel
