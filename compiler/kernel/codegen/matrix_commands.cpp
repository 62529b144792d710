#include "compiler/kernel/codegen/matrix_commands.h"

#include <array>
#include <bit>
#include <cstddef>

#include "hal/kernel_abi.h"

namespace fornax::kernel {

using llvm::Value;

namespace {

constexpr size_t kCounters = sizeof(hal::MatrixCounts) / sizeof(uint64_t);

}  // namespace

void MatrixCommands::Issue(hal::MatrixCommand command, hal::MatrixFormat format, uint32_t times) {
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

void MatrixCommands::Finish(llvm::Function& kernel) {
    for (llvm::BasicBlock& block : kernel) {
        if (!llvm::isa_and_nonnull<llvm::ReturnInst>(block.getTerminator()))
            continue;
        llvm::IRBuilder<> at(block.getTerminator());
        llvm::Type* i64 = at.getInt64Ty();
        std::array<Value*, kCounters> sums = {};
        for (const Block& counted : blocks_) {
            const auto counts = std::bit_cast<std::array<uint64_t, kCounters>>(counted.counts);
            Value* runs = at.CreateLoad(i64, counted.runs);
            for (size_t i = 0; i < kCounters; ++i) {
                if (counts[i] == 0)
                    continue;
                Value* count = at.CreateMul(runs, at.getInt64(counts[i]));
                sums[i] = sums[i] ? at.CreateAdd(sums[i], count) : count;
            }
        }
        for (size_t i = 0; i < kCounters; ++i) {
            if (!sums[i])
                continue;
            Value* counter = at.CreateConstInBoundsGEP1_64(
                at.getInt8Ty(), kernel.getArg(1),
                offsetof(hal::WorkerFrame, matrix) + i * sizeof(uint64_t));
            at.CreateStore(at.CreateAdd(at.CreateLoad(i64, counter), sums[i]), counter);
        }
    }
}

}  // namespace fornax::kernel
