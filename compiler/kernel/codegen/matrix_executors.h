// What carries the matrix unit's commands out on the host: its vector registers, or its tile
// registers (AMX). A register of the unit is memory, aligned to 64 bytes: the rows of an
// accumulator, or what the executor makes of an operand.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <vector>

#include "compiler/kernel/codegen/matrix_pack.h"
#include "compiler/kernel/ir/matrix.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

// Vectors that end to end are a matrix' rows.
using MatrixVectors = std::vector<llvm::Value*>;

// Cache lines that are prefetched meanwhile.
struct MatrixLines {
    llvm::ArrayRef<llvm::Value*> addresses;
    llvm::Value* array = nullptr;  // memory where they are, too
};

// An operand A or B: an operand register, or a matrix of f32 where it lies in memory.
struct MatrixOperand {
    llvm::Value* at = nullptr;
    // For f32 an i64: bytes between rows, or between columns.
    llvm::Value* stride = nullptr;
    bool columns = false;
    // For f32: it is part of a larger matrix in a buffer, whose next part is likely to be next.
    bool prefetch = false;
    bool operator==(const MatrixOperand&) const = default;
};

// Which MMA: Instruction::imm of matrix_muladd beside what the unit is configured for.
struct MatrixKind {
    hal::MatrixFormat format = hal::MatrixFormat::kF16;
    uint64_t flags = 0;
    // Bytes between rows of A that is taken where it lies; 0: A is packed.
    uint32_t stride_of_a = 0;
    bool operator==(const MatrixKind&) const = default;
};

inline const llvm::Align kMatrixAlign(64);
inline constexpr uint64_t kMatrixAccumulatorBytes = ir::kMatrixElements * 4;

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
    explicit MatrixExecutor(llvm::IRBuilder<>& builder) : b_(builder) {}
    virtual ~MatrixExecutor() = default;

    // What an operand register holds.
    virtual OperandForm FormOf(const MatrixKind& kind, bool is_b) const = 0;
    // A's rows are an operand of it wherever they lie, aligned to 4 bytes.
    virtual bool TakesRows(const MatrixKind&) const { return false; }
    // An operand register becomes the matrix of rows or columns in memory (MatrixPackFunction).
    void LoadOperand(llvm::Value* operand,
                     llvm::Value* from,
                     llvm::Value* stride,
                     const MatrixKind& kind,
                     bool is_b,
                     bool columns);
    // Accumulators, one or two rows of two, gain products in steps: an accumulator's operands are
    // its row's A and its column's B. `operands`: of each step those of A, then as many of B.
    void MultiplyAdd(llvm::ArrayRef<llvm::Value*> accumulators,
                     llvm::ArrayRef<MatrixOperand> operands,
                     const MatrixKind& kind,
                     const MatrixLines& lines);

  protected:
    llvm::Module& module() const { return *b_.GetInsertBlock()->getModule(); }
    // How many of `count` lines an MMA's function prefetches itself.
    virtual unsigned LinesWithin(const MatrixKind&, unsigned, unsigned, size_t) const { return 0; }
    // void(ptr c..., ptr operands...), and for `lines`, which LinesWithin gave, an array of as many
    // addresses.
    virtual llvm::Function* MmaFunctionOf(const MatrixKind& kind,
                                          unsigned side,
                                          unsigned steps,
                                          unsigned lines) const = 0;

    llvm::IRBuilder<>& b_;
};

class VectorExecutor : public MatrixExecutor {
  public:
    using MatrixExecutor::MatrixExecutor;
    OperandForm FormOf(const MatrixKind& kind, bool is_b) const override;
    bool TakesRows(const MatrixKind& kind) const override;

  private:
    unsigned LinesWithin(const MatrixKind& kind,
                         unsigned side,
                         unsigned steps,
                         size_t count) const override;
    llvm::Function* MmaFunctionOf(const MatrixKind& kind,
                                  unsigned side,
                                  unsigned steps,
                                  unsigned lines) const override;
};

// The tile registers are set up for one format a kernel.
class TileExecutor : public MatrixExecutor {
  public:
    TileExecutor(llvm::IRBuilder<>& builder, llvm::BasicBlock& entry, hal::MatrixFormat format)
        : MatrixExecutor(builder), entry_(entry), format_(format) {}

    hal::MatrixFormat format() const { return format_; }

    OperandForm FormOf(const MatrixKind& kind, bool is_b) const override;
    // Configures them when the kernel begins, and releases them before it returns.
    void Finish(llvm::Function& kernel);

  private:
    llvm::Function* MmaFunctionOf(const MatrixKind& kind,
                                  unsigned side,
                                  unsigned steps,
                                  unsigned lines) const override;

    llvm::BasicBlock& entry_;
    const hal::MatrixFormat format_;
};

}  // namespace fornax::kernel
