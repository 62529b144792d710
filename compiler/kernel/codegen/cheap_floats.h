// Float operations for which there is something cheaper with the same result.
#pragma once

#include <llvm/IR/PassManager.h>

namespace fornax::kernel {

// Quotients of vectors of f32 whose divisor is a scalar, or the same in each iteration of a loop,
// are products with its reciprocal, which is computed once. Two multiply-adds round them as a
// division does (cheap_floats.cpp). Divisions of 512 bits keep their unit busy for ten cycles, or
// more than twice as many on older processors.
// Others than those by a constant whose dividend is clamped and that are rounded to whole numbers,
// as quantisation does, are tested for being in the range of that, and divided if they are not.
// After LICM.
class ReciprocalsPass : public llvm::PassInfoMixin<ReciprocalsPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

// Fields of words as floats, such as weights of four bits: their bits become those of a mantissa in
// place, from which a constant is subtracted. So most of them are not shifted, and what is added to
// them costs nothing, nor does the constant in the difference of the same field of two words.
class FieldsPass : public llvm::PassInfoMixin<FieldsPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

// Rounding to even and converting to 32-bit integers are one instruction.
class RoundingCastsPass : public llvm::PassInfoMixin<RoundingCastsPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

// Minima and maxima that keep NaN become the processor's minimum or maximum and a selection: of
// "x is NaN, or greater than y" LLVM's combiner makes two comparisons, an operation on masks and a
// selection that all wait for one another. After that combiner.
class KeepNanPass : public llvm::PassInfoMixin<KeepNanPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace fornax::kernel
