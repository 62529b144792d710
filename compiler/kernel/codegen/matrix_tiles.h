// Products of matrices on the host's matrix unit (AMX), which adds products of rows of 64 bytes up:
// of pairs of bfloat16, or of four bytes.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <vector>

namespace fornax::kernel {

// Whether the module's target has the tiles and this product may use them: the unit takes denormals
// for 0. `flags` is Instruction::imm of matrix_muladd.
bool UsesTiles(const llvm::Module& module, uint64_t flags);

enum class TileFactors : uint8_t { kHalf, kBFloat, kBytes };

inline constexpr uint64_t kMaxTileFactorBytes = 2048;

// A factor in the form that TileMulAddFunction takes: vectors that follow each other in memory, in
// at most kMaxTileFactorBytes, aligned to 64. `rows`: the matrix's rows, 16 elements each.
//   f16     each number is the sum of two bfloat16, hi and lo, without any rounding. A: (hi, hi'),
//           then (lo, lo); B: (hi, lo), then (hi', lo), whose products are all four there are. hi'
//           is 0 for infinities and NaN, whose lo is 0, so that a * inf is a.hi * inf alone.
//   bfloat  A as it is; B with the elements of two rows alternating
//   bytes   A as it is; B with those of four rows
std::vector<llvm::Value*> PackTileFactor(llvm::IRBuilder<>& builder,
                                         llvm::ArrayRef<llvm::Value*> rows,
                                         TileFactors factors,
                                         bool is_b);

// void(ptr c..., ptr factors...): `side` x `side` sums, of 1 or 2 a side, in rows: sum (i, j) gains
// a[i] * b[j] in each of the steps, whose factors, `side` of A and then as many of B, follow each
// other. Sums have rows of 16 f32 or i32. All are aligned to 64 bytes.
llvm::Function* TileMulAddFunction(llvm::Module& module,
                                   TileFactors factors,
                                   uint64_t flags,
                                   unsigned side,
                                   unsigned steps);

// The unit's registers are set up, for one kind of factors, when a kernel starts, and given up
// before it returns.
void EmitTileSetup(llvm::IRBuilder<>& builder, TileFactors factors);
void EmitTileRelease(llvm::Function& function);

}  // namespace fornax::kernel
