// What carries the matrix unit's commands out on the host: its vector registers, or its tiles
// (AMX). A register of the unit is a place in memory, aligned to 64 bytes: of a sum, its rows; of a
// factor, what the executor makes of it.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/kernel/codegen/matrix_tiles.h"
#include "compiler/kernel/ir/matrix.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

// Vectors that end to end are a matrix' rows.
using MatrixVectors = std::vector<llvm::Value*>;

// Which product: Instruction::imm of matrix_muladd beside what the unit is configured for.
struct MatrixKind {
    hal::MatrixFormat format = hal::MatrixFormat::kF16;
    uint64_t flags = 0;
    bool operator==(const MatrixKind&) const = default;
};

inline const llvm::Align kMatrixAlign(64);
inline constexpr uint64_t kMatrixSumBytes = ir::kMatrixElements * 4;
inline constexpr uint64_t kMatrixFactorBytes = std::max(kMatrixSumBytes, kTileFactorBytes);

// Memory that the kernel's first block takes, aligned to kMatrixAlign.
llvm::Value* NewMatrixSlot(llvm::BasicBlock& entry, uint64_t bytes);
void StoreMatrix(llvm::IRBuilder<>& builder,
                 llvm::ArrayRef<llvm::Value*> matrix,
                 llvm::Value* slot);
// The same elements in vectors of another width.
MatrixVectors RegroupMatrix(llvm::IRBuilder<>& builder,
                            llvm::ArrayRef<llvm::Value*> matrix,
                            unsigned width);

class MatrixExecutor {
  public:
    virtual ~MatrixExecutor() = default;

    // A factor register becomes a matrix.
    virtual void LoadFactor(llvm::Value* factor,
                            llvm::ArrayRef<llvm::Value*> matrix,
                            const MatrixKind& kind,
                            bool is_b) = 0;
    // Sums of one row or two rows of two gain products, in steps: of a sum the factors are a row's
    // A and a column's B. `factors`: of each step those of A, then as many of B.
    virtual void MultiplyAdd(llvm::ArrayRef<llvm::Value*> sums,
                             llvm::ArrayRef<llvm::Value*> factors,
                             const MatrixKind& kind) = 0;
};

// One sum and one step at a time.
class VectorExecutor : public MatrixExecutor {
  public:
    VectorExecutor(llvm::IRBuilder<>& builder, uint32_t vector_bits)
        : b_(builder), vector_bits_(vector_bits) {}

    void LoadFactor(llvm::Value* factor,
                    llvm::ArrayRef<llvm::Value*> matrix,
                    const MatrixKind& kind,
                    bool is_b) override;
    void MultiplyAdd(llvm::ArrayRef<llvm::Value*> sums,
                     llvm::ArrayRef<llvm::Value*> factors,
                     const MatrixKind& kind) override;

  private:
    llvm::Value* Widen(llvm::Value* vector, const MatrixKind& kind, bool is_signed);
    MatrixVectors AlternateRows(llvm::ArrayRef<llvm::Value*> matrix);

    llvm::IRBuilder<>& b_;
    const uint32_t vector_bits_;
};

// The tiles are set up for one format a kernel.
class TileExecutor : public MatrixExecutor {
  public:
    TileExecutor(llvm::IRBuilder<>& builder, llvm::BasicBlock& entry, hal::MatrixFormat format)
        : b_(builder), entry_(entry), format_(format) {}

    hal::MatrixFormat format() const { return format_; }

    void LoadFactor(llvm::Value* factor,
                    llvm::ArrayRef<llvm::Value*> matrix,
                    const MatrixKind& kind,
                    bool is_b) override;
    // The same of rows, or columns, in memory (TilePackFunction).
    void LoadFactorOf(llvm::Value* factor,
                      llvm::Value* from,
                      uint64_t stride,
                      bool is_b,
                      bool columns);
    void MultiplyAdd(llvm::ArrayRef<llvm::Value*> sums,
                     llvm::ArrayRef<llvm::Value*> factors,
                     const MatrixKind& kind) override;
    // Configures them when the kernel begins, and releases them before it returns.
    void Finish(llvm::Function& kernel);

  private:
    llvm::IRBuilder<>& b_;
    llvm::BasicBlock& entry_;
    const hal::MatrixFormat format_;
    llvm::Value* rows_ = nullptr;  // a factor's that are on their way
};

}  // namespace fornax::kernel
