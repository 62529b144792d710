// What few elements in memory become that many lanes use.
#pragma once

#include <llvm/IR/PassManager.h>

namespace fornax::kernel {

// Two halves of each word that are both converted to f32, such as the scale and the offset of a
// block of weights, are converted as one vector and parted afterwards: shuffles of f32 merge with
// those that bring them to the lanes, where parting halves takes shifts and narrowing.
class PairedHalvesPass : public llvm::PassInfoMixin<PairedHalvesPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

// Elements of a short vector in memory, each of which all lanes get, are loaded one by one: a load
// brings an element to all lanes without a shuffle.
class SplatLoadsPass : public llvm::PassInfoMixin<SplatLoadsPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace fornax::kernel
