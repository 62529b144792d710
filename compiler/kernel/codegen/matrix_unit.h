// The matrix unit (hal/matrix_unit.h) as a kernel uses it: its commands are issued here, counted,
// and carried out by the host's tile or vector registers (matrix_executors.h).
//
// A basic block with commands counts how often it runs, which LLVM keeps in a register or makes a
// loop's number of iterations. That times the block's commands is added to the worker's frame
// before the kernel returns, so a command costs nothing, and a block one addition.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/kernel/codegen/explain_recorder.h"
#include "compiler/kernel/codegen/matrix_executors.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

class MatrixUnit {
  public:
    MatrixUnit(llvm::IRBuilder<>& builder, llvm::BasicBlock& entry, ExplainRecorder& recorder)
        : b_(builder), entry_(entry), recorder_(recorder), vectors_(builder) {}

    // Before all commands: the tile registers take one format a kernel, which is the first of those
    // given here that they can have.
    void Prepare(const MatrixKind& kind);
    // What an operand becomes.
    OperandForm FormOf(const MatrixKind& kind, bool is_b) {
        return ExecutorOf(kind).FormOf(kind, is_b);
    }
    bool TakesRows(const MatrixKind& kind) { return ExecutorOf(kind).TakesRows(kind); }

    // LOAD_OPERAND: of vectors that end to end are its rows; or of rows or columns in memory.
    void LoadOperand(llvm::Value* operand,
                     llvm::ArrayRef<llvm::Value*> matrix,
                     const MatrixKind& kind,
                     bool is_b);
    void LoadOperandOf(llvm::Value* operand,
                       llvm::Value* from,
                       uint64_t stride,
                       const MatrixKind& kind,
                       bool is_b,
                       bool columns);
    // LOAD_OPERAND of what stays where it lies.
    void TakeOperand(hal::MatrixFormat format) { Count(hal::MatrixCommand::kLoadOperand, format); }
    // LOAD_ACCUMULATOR, MULTIPLY_ADD and STORE_ACCUMULATOR, in memory: MatrixExecutor::MultiplyAdd.
    void MultiplyAdd(llvm::ArrayRef<llvm::Value*> accumulators,
                     llvm::ArrayRef<MatrixOperand> operands,
                     const MatrixKind& kind,
                     const MatrixLines& lines);
    // CONFIGURE and RELEASE. When all of the kernel's code is there.
    void Finish(llvm::Function& kernel);

  private:
    struct Block {
        llvm::AllocaInst* runs = nullptr;
        hal::MatrixCounts counts;  // of one run
    };
    MatrixExecutor& ExecutorOf(const MatrixKind& kind);
    // `times` commands at the builder's place.
    void Count(hal::MatrixCommand command, hal::MatrixFormat format, uint32_t times = 1);
    void AddCounts(llvm::Function& kernel);

    llvm::IRBuilder<>& b_;
    llvm::BasicBlock& entry_;
    ExplainRecorder& recorder_;
    VectorExecutor vectors_;
    std::optional<TileExecutor> tiles_;
    llvm::Value* rows_ = nullptr;        // an operand's that are on their way
    llvm::BasicBlock* block_ = nullptr;  // that the last of `blocks_` is for
    std::vector<Block> blocks_;
};

}  // namespace fornax::kernel
