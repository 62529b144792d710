// Matrix multiply-accumulates in the host's tile registers (AMX), which add products of rows of 64
// bytes up: of pairs of bfloat16, or of four bytes.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>

#include "compiler/kernel/codegen/matrix_pack.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

// Whether the module's target has tile registers and this MMA may use them: the unit takes
// denormals for 0, and f32 is multiplied as f32. `flags` is Instruction::imm of matrix_muladd.
bool UsesTiles(const llvm::Module& module, hal::MatrixFormat format, uint64_t flags);

using hal::MatrixFormat;

// The form of both operands that TileMulAddFunction takes.
OperandForm TileForm(MatrixFormat format);

// void(ptr c..., ptr operands...): `side` x `side` accumulators, of 1 or 2 a side, in rows:
// accumulator (i, j) gains a[i] * b[j] in each of the steps, whose operands, `side` of A and then
// as many of B, follow each other. Accumulators have rows of 16 f32 or i32. All are aligned to 64
// bytes.
llvm::Function* TileMulAddFunction(llvm::Module& module,
                                   MatrixFormat format,
                                   uint64_t flags,
                                   unsigned side,
                                   unsigned steps);

// Tile registers are configured, for one format, when a kernel starts, and released before it
// returns.
void EmitTileSetup(llvm::IRBuilder<>& builder, MatrixFormat format);
void EmitTileRelease(llvm::Function& function);

}  // namespace fornax::kernel
