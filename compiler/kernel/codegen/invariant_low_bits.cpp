#include "compiler/kernel/codegen/invariant_low_bits.h"

#include <optional>

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/DemandedBits.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include "compiler/kernel/codegen/recurrences.h"

namespace fornax::kernel {

using llvm::APInt;
using llvm::Instruction;
using llvm::Loop;
using llvm::Value;

namespace {

// A vector of the loop whose lanes share a scalar of the loop.
struct Splat {
    Instruction* vector = nullptr;
    Instruction* scalar = nullptr;
};

std::optional<Splat> SplatOf(const Loop& loop, Instruction& inst) {
    const bool frozen = llvm::isa<llvm::FreezeInst>(inst);
    if ((!frozen && !llvm::isa<llvm::ShuffleVectorInst>(inst)) ||
        !inst.getType()->isIntOrIntVectorTy() || !inst.getType()->isVectorTy()) {
        return {};
    }
    auto* scalar = llvm::dyn_cast_or_null<Instruction>(
        llvm::getSplatValue(frozen ? inst.getOperand(0) : &inst));
    return scalar && loop.contains(scalar) ? std::optional(Splat{&inst, scalar}) : std::nullopt;
}

llvm::SmallVector<Splat, 16> SplatsOf(const Loop& loop) {
    llvm::SmallVector<Splat, 16> found;
    for (llvm::BasicBlock* block : loop.blocks()) {
        for (Instruction& inst : *block) {
            if (const std::optional<Splat> splat = SplatOf(loop, inst)) {
                found.push_back(*splat);
            }
        }
    }
    return found;
}

// The only value that a phi can have, if there is one.
Value* OnlyIncoming(llvm::PHINode& phi) {
    return phi.hasConstantValue();
}

class LoopRewriter {
  public:
    LoopRewriter(Loop& loop, llvm::DemandedBits& demanded)
        : loop_(loop), demanded_(demanded), recurrences_(loop, OnlyIncoming) {}

    void Replace(const Splat& splat) {
        const unsigned bits = demanded_.getDemandedBits(splat.vector).getActiveBits();
        const auto found = bits != 0 ? recurrences_.Of(splat.scalar) : std::nullopt;
        if (!found || !found->limits.empty() || found->stride.countr_zero() < bits) {
            return;
        }
        Recurrences::Recurrence low = *found;
        low.offset &= APInt::getLowBitsSet(low.offset.getBitWidth(), bits);
        Value* first = recurrences_.First(low);
        Recurrences::Builder& b = recurrences_.before();
        const auto lanes = llvm::cast<llvm::FixedVectorType>(splat.vector->getType());
        Value* vector = b.CreateVectorSplat(lanes->getNumElements(), first);
        if (llvm::isa<llvm::FreezeInst>(splat.vector)) {
            vector = b.CreateFreeze(vector);
        }
        ForgetPromises(*splat.vector);
        llvm::SmallVector<Instruction*, 16> users;
        for (llvm::User* user : splat.vector->users()) {
            users.push_back(llvm::cast<Instruction>(user));
        }
        splat.vector->replaceAllUsesWith(vector);
        Hoist(std::move(users));
    }

  private:
    // Bits that nobody asks for change, of which flags of the users, such as that a sum does not
    // wrap, may say something.
    void ForgetPromises(Instruction& changed) {
        llvm::SmallPtrSet<Instruction*, 16> seen;
        llvm::SmallVector<Instruction*, 16> open = {&changed};
        while (!open.empty()) {
            for (llvm::User* user : open.pop_back_val()->users()) {
                auto* inst = llvm::cast<Instruction>(user);
                if (inst->getType()->isIntOrIntVectorTy() && seen.insert(inst).second &&
                    !demanded_.getDemandedBits(inst).isAllOnes()) {
                    inst->dropPoisonGeneratingAnnotations();
                    open.push_back(inst);
                }
            }
        }
    }

    // What has become the same in each iteration is computed before the loop.
    void Hoist(llvm::SmallVector<Instruction*, 16> open) {
        Instruction* end = loop_.getLoopPreheader()->getTerminator();
        while (!open.empty()) {
            Instruction* inst = open.pop_back_val();
            if (!loop_.contains(inst) || llvm::isa<llvm::PHINode>(inst) ||
                !loop_.hasLoopInvariantOperands(inst) || inst->mayReadOrWriteMemory() ||
                !llvm::isSafeToSpeculativelyExecute(inst)) {
                continue;
            }
            inst->moveBefore(end);
            inst->dropUnknownNonDebugMetadata();
            for (llvm::User* user : inst->users()) {
                open.push_back(llvm::cast<Instruction>(user));
            }
        }
    }

    Loop& loop_;
    llvm::DemandedBits& demanded_;
    Recurrences recurrences_;
};

}  // namespace

llvm::PreservedAnalyses InvariantLowBitsPass::run(llvm::Function& function,
                                                  llvm::FunctionAnalysisManager& analyses) {
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(function);
    bool changed = false;
    for (Loop* loop : loops.getLoopsInPreorder()) {
        if (!loop->isInnermost() || !loop->getLoopPreheader() || !loop->getLoopLatch()) {
            continue;
        }
        const llvm::SmallVector<Splat, 16> splats = SplatsOf(*loop);
        if (!splats.empty()) {
            auto& demanded = analyses.getResult<llvm::DemandedBitsAnalysis>(function);
            LoopRewriter rewriter(*loop, demanded);
            for (const Splat& splat : splats) {
                rewriter.Replace(splat);
            }
            changed = true;  // if only by what was looked at before the loop
        }
    }
    if (!changed) {
        return llvm::PreservedAnalyses::all();
    }
    llvm::PreservedAnalyses preserved;
    preserved.preserveSet<llvm::CFGAnalyses>();
    return preserved;
}

}  // namespace fornax::kernel
