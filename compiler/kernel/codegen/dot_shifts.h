// Dot products of bytes that are fields of words.
#pragma once

#include <llvm/IR/PassManager.h>

namespace fornax::kernel {

// A sum of dot products whose unsigned bytes are fields shifted down, each lane by its own distance
// as in `(word >> s) & 0x0f0f0f0f`, is that of the fields in place, shifted down once: a field of s
// bits higher counts 2^s times as much, and so does the sum.
class DotShiftsPass : public llvm::PassInfoMixin<DotShiftsPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace fornax::kernel
