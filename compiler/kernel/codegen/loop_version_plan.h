// The plan of a loop whose tests are made once (version_loops.h): what is tested where, and the
// copy that is made by it.
#pragma once

#include <optional>

#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include "compiler/kernel/codegen/recurrences.h"

namespace fornax::kernel {

// What is tested where.
class LoopVersionPlan {
    static constexpr size_t kMostIterationTests = 4;

    // A condition and what it is nearly always.
    struct Wanted {
        llvm::Value* condition = nullptr;
        bool value = true;

        bool operator==(const Wanted&) const = default;
    };

    // An index of an access, which the copy counts instead of computing it.
    struct Address {
        llvm::GetElementPtrInst* access = nullptr;
        unsigned operand = 0;
        Recurrences::Recurrence index;
    };

  public:
    LoopVersionPlan(llvm::Loop& loop, const llvm::PostDominatorTree& ends)
        : loop_(loop), ends_(ends) {}

    // False if the loop stays as it is.
    bool Make();
    void Carry(llvm::Function& function);

  private:
    void FindPath();
    bool Prove(Recurrences& recurrences, const Wanted& wanted);
    bool TryToProve(Recurrences& recurrences, const Wanted& wanted);
    bool ProveEither(Recurrences& recurrences, const Wanted& first, const Wanted& second);
    bool ProveComparison(Recurrences& recurrences,
                         llvm::ICmpInst& compare,
                         llvm::CmpInst::Predicate predicate);
    bool TestEachIteration(const Wanted& wanted);
    bool FromHeader(llvm::Value* value,
                    llvm::SmallSetVector<llvm::Instruction*, 16>& operations) const;
    llvm::Value* Incoming(llvm::PHINode& phi) const;
    void FindAddresses(Recurrences& recurrences);
    llvm::Value* PassingIterations();
    llvm::SmallVector<Wanted, kMostIterationTests + 1> AtFirst() const;
    llvm::Value* Compute(llvm::IRBuilder<>& b,
                         llvm::ArrayRef<Wanted> wanted,
                         llvm::ValueToValueMapTy& phis) const;
    void CountAddresses(llvm::ValueToValueMapTy& copies,
                        llvm::BasicBlock& before,
                        llvm::BasicBlock& first,
                        llvm::BasicBlock& latch);

    llvm::Loop& loop_;
    const llvm::PostDominatorTree& ends_;
    llvm::Instruction* last_before_ = nullptr;  // in the preheader, before what is added there
    llvm::SmallSetVector<llvm::BranchInst*, 16>
        candidates_;                                    // likely ones on each iteration's path
    llvm::SmallPtrSet<llvm::BranchInst*, 16> decided_;  // of these, which are not tested again
    llvm::SmallPtrSet<const llvm::BasicBlock*, 32> reached_;  // by the copy
    llvm::SmallPtrSet<llvm::BasicBlock*, 16> path_;           // of each iteration
    llvm::SmallVector<llvm::Value*, 16> before_;              // i1: true, or no iteration passes
    Recurrences::Limits limits_;
    llvm::SmallVector<Wanted, kMostIterationTests> each_iteration_;
    llvm::SmallVector<Address, 16> addresses_;
};

inline llvm::BranchInst* BranchOf(llvm::BasicBlock* block) {
    return llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
}

}  // namespace fornax::kernel
