// Conversions of a few elements that a shuffle spreads over many lanes, and of what is loaded.
#pragma once

#include <llvm/IR/PassManager.h>

namespace fornax::kernel {

// What lanes share is loaded once and spread by a shuffle, as the scales of blocks of weights are.
// A conversion behind the shuffle, or a shift by a constant, is made before it where there are
// fewer elements by half at least. What one of two ways loads is extended on either way, because a
// load extends without another instruction.
class CastsBeforeShufflesPass : public llvm::PassInfoMixin<CastsBeforeShufflesPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace fornax::kernel
