// What all lanes share in an iteration, computed for all iterations at once.
#pragma once

#include <llvm/IR/PassManager.h>

namespace fornax::kernel {

// What follows from a loop's counter alone can take longer than the processor looks ahead, as the
// position of a sample does that went through floats: addresses wait for it, all else for these. If
// the loop has few iterations, it is computed before the loop, as a vector that has a lane for each
// of them, and each iteration loads its element. That place is as far outside as all that the value
// depends on allows, such as before all workgroups of a row. After LICM, which leaves loops with a
// block before each of them.
class IterationTablesPass : public llvm::PassInfoMixin<IterationTablesPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace fornax::kernel
