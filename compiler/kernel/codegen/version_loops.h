// Loops whose tests are made once.
#pragma once

#include <llvm/IR/PassManager.h>

namespace fornax::kernel {

// A test that nearly always goes one way, as that of assumptions about lanes (assumption_check.h),
// often compares what grows evenly from iteration to iteration. Such tests of an innermost loop are
// made before it: they say how many iterations pass them all. A copy of the loop without the tests
// runs these iterations, as long as, at the start of an iteration, all lanes are there for which a
// test asks; the loop as it was does the rest, be it all of it. After LICM, which leaves loops in
// the form that this needs (LoopSimplify, LCSSA).
class VersionLoopsPass : public llvm::PassInfoMixin<VersionLoopsPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace fornax::kernel
