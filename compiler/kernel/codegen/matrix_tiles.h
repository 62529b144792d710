// Products of matrices on the host's matrix unit (AMX), which adds products of rows of 64 bytes up:
// of pairs of bfloat16, or of four bytes.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>

#include "hal/matrix_unit.h"

namespace fornax::kernel {

// Whether the module's target has the tiles and this product may use them: the unit takes denormals
// for 0. `flags` is Instruction::imm of matrix_muladd.
bool UsesTiles(const llvm::Module& module, uint64_t flags);

using hal::MatrixFormat;

// What a packed factor takes at most. It is no power of two, because loads wait for stores whose
// addresses have the same lowest twelve bits.
inline constexpr uint64_t kTileFactorBytes = 2112;

// void(ptr packed, ptr from, i64 stride): writes a factor in the form that TileMulAddFunction
// takes, aligned to 64 bytes. Its rows, or its columns (of elements of 16 bits only), of 16
// elements each begin `stride` bytes after one another.
//   f16     each number is the sum of two bfloat16, hi and lo, without any rounding. A: (lo, hi);
//           B: (hi', hi), then (lo, lo), whose products are all four there are. hi' is 0 for
//           infinities and NaN, whose lo is 0, so that a * inf is a.hi * inf alone. If there are
//           any in A, a second form of it, (lo, hi'), is for the second one of B.
//   bfloat  A as it is; B with the elements of two rows alternating
//   bytes   A as it is; B with those of four rows
llvm::Function* TilePackFunction(llvm::Module& module,
                                 MatrixFormat format,
                                 bool is_b,
                                 bool columns);

// void(ptr c..., ptr factors...): `side` x `side` sums, of 1 or 2 a side, in rows: sum (i, j) gains
// a[i] * b[j] in each of the steps, whose factors, `side` of A and then as many of B, follow each
// other. Sums have rows of 16 f32 or i32. All are aligned to 64 bytes.
llvm::Function* TileMulAddFunction(llvm::Module& module,
                                   MatrixFormat format,
                                   uint64_t flags,
                                   unsigned side,
                                   unsigned steps);

// The tiles are set up, for one format, when a kernel starts, and given up before it returns.
void EmitTileSetup(llvm::IRBuilder<>& builder, MatrixFormat format);
void EmitTileRelease(llvm::Function& function);

}  // namespace fornax::kernel
