#include "compiler/kernel/codegen/matrix_unit.h"

#include <array>
#include <bit>
#include <cstddef>

#include "compiler/kernel/codegen/matrix_tiles.h"
#include "hal/kernel_abi.h"

namespace fornax::kernel {

using llvm::Value;

namespace {

constexpr size_t kCounters = sizeof(hal::MatrixCounts) / sizeof(uint64_t);

}  // namespace

void MatrixUnit::Prepare(const MatrixKind& kind) {
    if (!tiles_ && UsesTiles(*entry_.getModule(), kind.format, kind.flags)) {
        tiles_.emplace(b_, entry_, kind.format);
    }
}

MatrixExecutor& MatrixUnit::ExecutorOf(const MatrixKind& kind) {
    if (tiles_ && tiles_->format() == kind.format &&
        UsesTiles(*entry_.getModule(), kind.format, kind.flags)) {
        return *tiles_;
    }
    return vectors_;
}

void MatrixUnit::LoadOperand(Value* operand,
                             llvm::ArrayRef<Value*> matrix,
                             const MatrixKind& kind,
                             bool is_b) {
    if (kind.format == hal::MatrixFormat::kF32) {
        StoreMatrix(b_, matrix, operand);
        TakeOperand(kind.format);
        return;
    }
    if (!rows_) {
        rows_ = NewMatrixSlot(entry_, uint64_t{ir::kMatrixElements} * 2);
    }
    StoreMatrix(b_, matrix, rows_);
    const uint64_t element_bytes = kind.format == hal::MatrixFormat::kInt8 ? 1 : 2;
    LoadOperandOf(operand, rows_, ir::kMatrixSize * element_bytes, kind, is_b, /*columns=*/false);
}

void MatrixUnit::LoadOperandOf(Value* operand,
                               Value* from,
                               uint64_t stride,
                               const MatrixKind& kind,
                               bool is_b,
                               bool columns) {
    ExecutorOf(kind).LoadOperand(operand, from, b_.getInt64(stride), kind, is_b, columns);
    Count(hal::MatrixCommand::kLoadOperand, kind.format);
}

void MatrixUnit::MultiplyAdd(llvm::ArrayRef<Value*> accumulators,
                             llvm::ArrayRef<MatrixOperand> operands,
                             const MatrixKind& kind,
                             const MatrixLines& lines) {
    ExecutorOf(kind).MultiplyAdd(accumulators, operands, kind, lines);
    const auto count = static_cast<uint32_t>(accumulators.size());
    // The accumulators of a row share one operand A, and those of a column one B.
    const auto steps = static_cast<uint32_t>(operands.size()) / (count == 1 ? 2 : 4);
    Count(hal::MatrixCommand::kLoadAccumulator, kind.format, count);
    Count(hal::MatrixCommand::kMultiplyAdd, kind.format, count * steps);
    Count(hal::MatrixCommand::kStoreAccumulator, kind.format, count);
}

void MatrixUnit::Finish(llvm::Function& kernel) {
    AddCounts(kernel);
    if (!tiles_) {
        return;
    }
    recorder_.MatrixTiles();
    tiles_->Finish(kernel);
}

void MatrixUnit::Count(hal::MatrixCommand command, hal::MatrixFormat format, uint32_t times) {
    llvm::Type* i64 = b_.getInt64Ty();
    if (b_.GetInsertBlock() != block_) {
        block_ = b_.GetInsertBlock();
        llvm::IRBuilder<> at(&entry_, entry_.begin());
        llvm::AllocaInst* runs = at.CreateAlloca(i64, nullptr, "matrix_runs");
        at.CreateStore(at.getInt64(0), runs);
        b_.CreateStore(b_.CreateAdd(b_.CreateLoad(i64, runs), b_.getInt64(1)), runs);
        blocks_.push_back({.runs = runs, .counts = {}});
        recorder_.BeginMatrixCommands();
    }
    blocks_.back().counts.of(command, format) += times;
    recorder_.MatrixCommands(blocks_.back().counts);
}

void MatrixUnit::AddCounts(llvm::Function& kernel) {
    for (llvm::BasicBlock& block : kernel) {
        if (!llvm::isa_and_nonnull<llvm::ReturnInst>(block.getTerminator())) {
            continue;
        }
        llvm::IRBuilder<> at(block.getTerminator());
        llvm::Type* i64 = at.getInt64Ty();
        std::array<Value*, kCounters> sums = {};
        for (const Block& counted : blocks_) {
            const auto counts = std::bit_cast<std::array<uint64_t, kCounters>>(counted.counts);
            Value* runs = at.CreateLoad(i64, counted.runs);
            for (size_t i = 0; i < kCounters; ++i) {
                if (counts[i] == 0) {
                    continue;
                }
                Value* count = at.CreateMul(runs, at.getInt64(counts[i]));
                sums[i] = sums[i] ? at.CreateAdd(sums[i], count) : count;
            }
        }
        for (size_t i = 0; i < kCounters; ++i) {
            if (!sums[i]) {
                continue;
            }
            Value* counter = at.CreateConstInBoundsGEP1_64(
                at.getInt8Ty(), kernel.getArg(1),
                offsetof(hal::WorkerFrame, unit_counts) + i * sizeof(uint64_t));
            at.CreateStore(at.CreateAdd(at.CreateLoad(i64, counter), sums[i]), counter);
        }
    }
}

}  // namespace fornax::kernel
