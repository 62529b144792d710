// Products of matrices on the host's matrix unit (AMX), which adds products of rows of 64 bytes up:
// of pairs of bfloat16, or of four bytes.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>

#include "compiler/kernel/codegen/matrix_pack.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

// Whether the module's target has the tiles and this product may use them: the unit takes denormals
// for 0, and f32 is multiplied as f32. `flags` is Instruction::imm of matrix_muladd.
bool UsesTiles(const llvm::Module& module, hal::MatrixFormat format, uint64_t flags);

using hal::MatrixFormat;

// The form of both operands that TileMulAddFunction takes.
OperandForm TileForm(MatrixFormat format);

// void(ptr c..., ptr operands...): `side` x `side` sums, of 1 or 2 a side, in rows: sum (i, j)
// gains a[i] * b[j] in each of the steps, whose operands, `side` of A and then as many of B, follow
// each other. Sums have rows of 16 f32 or i32. All are aligned to 64 bytes.
llvm::Function* TileMulAddFunction(llvm::Module& module,
                                   MatrixFormat format,
                                   uint64_t flags,
                                   unsigned side,
                                   unsigned steps);

// The tiles are set up, for one format, when a kernel starts, and given up before it returns.
void EmitTileSetup(llvm::IRBuilder<>& builder, MatrixFormat format);
void EmitTileRelease(llvm::Function& function);

}  // namespace fornax::kernel
