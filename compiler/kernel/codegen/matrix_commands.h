// The commands that a kernel issues to the matrix unit (hal/matrix_unit.h), as they are counted:
// what carries them out on the host is emitted beside (matrix_code.h, matrix_tiles.h).
//
// A basic block with commands counts how often it runs, which LLVM keeps in a register or makes a
// loop's number of turns. That times the block's commands is added to the worker's frame before the
// kernel returns, so a command costs nothing, and a block one addition.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <vector>

#include "compiler/kernel/codegen/explain_recorder.h"
#include "hal/matrix_unit.h"

namespace fornax::kernel {

class MatrixCommands {
  public:
    MatrixCommands(llvm::IRBuilder<>& builder, llvm::BasicBlock& entry, ExplainRecorder& recorder)
        : b_(builder), entry_(entry), recorder_(recorder) {}

    // `times` commands at the builder's place.
    void Issue(hal::MatrixCommand command, hal::MatrixFormat format, uint32_t times = 1);
    // When all of the kernel's code is there.
    void Finish(llvm::Function& kernel);

  private:
    struct Block {
        llvm::AllocaInst* runs = nullptr;
        hal::MatrixCounts counts;  // of one run
    };

    llvm::IRBuilder<>& b_;
    llvm::BasicBlock& entry_;
    ExplainRecorder& recorder_;
    llvm::BasicBlock* block_ = nullptr;  // that the last of `blocks_` is for
    std::vector<Block> blocks_;
};

}  // namespace fornax::kernel
