// Vectors of which only bits are used that are the same in each iteration of a loop.
#pragma once

#include <llvm/IR/PassManager.h>

namespace fornax::kernel {

// An add recurrence whose stride is a multiple of 2^k has the same k low bits in each iteration.
// Where a vector of lanes that share such a value is asked for these bits only, as for the place
// of each lane's weights within a block, it is taken from the first iteration, and what is computed
// of it moves out of the loop. After VersionLoopsPass, whose copies of loops have no accesses left
// that want a lane's whole offset.
class InvariantLowBitsPass : public llvm::PassInfoMixin<InvariantLowBitsPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace fornax::kernel
