// The pass pipeline of jit.h.
#include "compiler/kernel/codegen/jit.h"

#include "compiler/kernel/codegen/baseline_constants.h"
#include "compiler/kernel/codegen/baseline_split.h"
#include "compiler/kernel/codegen/casts_before_shuffles.h"
#include "compiler/kernel/codegen/cheap_floats.h"
#include "compiler/kernel/codegen/contract.h"
#include "compiler/kernel/codegen/dot_shifts.h"
#include "compiler/kernel/codegen/invariant_low_bits.h"
#include "compiler/kernel/codegen/iteration_tables.h"
#include "compiler/kernel/codegen/promote_slots.h"
#include "compiler/kernel/codegen/shared_loads.h"
#include "compiler/kernel/codegen/target_machine.h"
#include "compiler/kernel/codegen/version_loops.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <algorithm>

namespace fornax::kernel {

namespace {

// The backend calls a library for long memsets; this writes them out, 64 bytes a step.
void LowerMemSet(llvm::MemSetInst* set) {
    constexpr uint64_t kStep = 64;
    uint64_t size = llvm::cast<llvm::ConstantInt>(set->getLength())->getZExtValue();
    llvm::Align alignment = set->getDestAlign().valueOrOne();
    auto store = [&](llvm::IRBuilder<>& b, llvm::Value* offset, uint64_t bytes) {
        llvm::Value* value = b.CreateVectorSplat(static_cast<unsigned>(bytes), set->getValue());
        llvm::Value* address = b.CreateGEP(b.getInt8Ty(), set->getDest(), offset);
        b.CreateAlignedStore(value, address, std::min(alignment, llvm::Align(bytes)),
                             set->isVolatile());
    };
    uint64_t steps = size / kStep;
    if (steps != 0) {
        auto [body, index] = llvm::SplitBlockAndInsertSimpleForLoop(
            llvm::ConstantInt::get(llvm::Type::getInt64Ty(set->getContext()), steps), set);
        llvm::IRBuilder<> b(body);
        store(b, b.CreateMul(index, b.getInt64(kStep)), kStep);
    }
    llvm::IRBuilder<> b(set);
    uint64_t done = steps * kStep;
    for (uint64_t bytes = kStep / 2; bytes != 0; bytes /= 2) {
        if (size - done >= bytes) {
            store(b, b.getInt64(done), bytes);
            done += bytes;
        }
    }
    set->eraseFromParent();
}

void LowerMemSets(llvm::Module& module) {
    llvm::SmallVector<llvm::MemSetInst*, 4> sets;
    for (llvm::Function& function : module) {
        for (llvm::Instruction& instruction : llvm::instructions(function)) {
            if (auto* set = llvm::dyn_cast<llvm::MemSetInst>(&instruction);
                set && llvm::isa<llvm::ConstantInt>(set->getLength())) {
                sets.push_back(set);
            }
        }
    }
    for (llvm::MemSetInst* set : sets) {
        LowerMemSet(set);
    }
}

// Without AVX512-FP16 the backend makes a scalar f16 minimum of `x < c ? x : c` and calls a library
// for it. Selecting the bits instead is not recognised.
void HideHalfMinima(llvm::Module& module) {
    llvm::SmallVector<llvm::SelectInst*, 8> selects;
    for (llvm::Function& function : module) {
        for (llvm::Instruction& instruction : llvm::instructions(function)) {
            if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction);
                select && select->getType()->isHalfTy() &&
                llvm::isa<llvm::FCmpInst>(select->getCondition())) {
                selects.push_back(select);
            }
        }
    }
    for (llvm::SelectInst* select : selects) {
        llvm::IRBuilder<> b(select);
        llvm::Value* bits = b.CreateSelect(
            select->getCondition(), b.CreateBitCast(select->getTrueValue(), b.getInt16Ty()),
            b.CreateBitCast(select->getFalseValue(), b.getInt16Ty()));
        select->replaceAllUsesWith(b.CreateBitCast(bits, select->getType()));
        select->eraseFromParent();
    }
}

// Basic blocks of a function above which loops are left as they are. To bring n loops into LLVM's
// normal form takes a time that grows with the square of n: here, some 3 s.
constexpr size_t kManyBlocks = 12'000;

// Operations on masks above which instructions are not combined: in a chain of masks, each without
// the lanes of those before it, LLVM compares each with all the others. Here, some 4 s.
constexpr ptrdiff_t kManyMasks = 2000;

ptrdiff_t CountMasks(const llvm::Module& module) {
    ptrdiff_t count = 0;
    for (const llvm::Function& function : module) {
        count += llvm::count_if(llvm::instructions(function), [](const auto& instruction) {
            return instruction.isBitwiseLogicOp() && instruction.getType()->isVectorTy() &&
                   instruction.getType()->isIntOrIntVectorTy(1);
        });
    }
    return count;
}

class SplitPass : public llvm::PassInfoMixin<SplitPass> {
  public:
    SplitPass(unsigned lanes, unsigned part_lanes) : lanes_(lanes), part_lanes_(part_lanes) {}

    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
        SplitVectors(function, lanes_, part_lanes_);
        llvm::PreservedAnalyses preserved;
        preserved.preserveSet<llvm::CFGAnalyses>();
        return preserved;
    }

  private:
    unsigned lanes_;
    unsigned part_lanes_;
};

}  // namespace

Status OptimizeModule(llvm::Module& module,
                      llvm::TargetMachine& machine,
                      CodeTier tier,
                      unsigned lanes) {
    // LLVM crashes or miscompiles what it does not expect, so this is checked in every build.
    std::string errors;
    llvm::raw_string_ostream error_stream(errors);
    if (llvm::verifyModule(module, &error_stream)) {
        return Error{ErrorCode::kInternal,
                     "The kernel compiler made LLVM IR that is not valid: " + errors};
    }
    PromoteSlots(module);
    LowerMemSets(module);
    ContractMultiplyAdds(module);  // of what was emitted, so for both tiers alike
    // In this order: the outer managers' proxies clear the inner managers when they are destroyed.
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager sccs;
    llvm::ModuleAnalysisManager modules;
    // No function of any library exists for a kernel: no pass may turn code into a call.
    llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
    library.disableAllFunctions();
    functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
    llvm::PassBuilder builder(&machine);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(sccs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, sccs, modules);

    llvm::FunctionPassManager passes;
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    if (tier == CodeTier::kBaseline) {
        passes.addPass(
            SplitPass(lanes, static_cast<unsigned>(FlagOf(module, kVectorBitsFlag) / 32)));
        // Pays for itself: what it removes need not be selected.
        passes.addPass(llvm::EarlyCSEPass());
    } else {
        passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
        passes.addPass(llvm::SimplifyCFGPass());
        if (CountMasks(module) <= kManyMasks) {
            passes.addPass(llvm::InstCombinePass());
        }
        if (std::ranges::none_of(module, [](const auto& f) { return f.size() > kManyBlocks; })) {
            passes.addPass(
                llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()),
                                                      /*UseMemorySSA=*/true));
            passes.addPass(VersionLoopsPass());
            passes.addPass(InvariantLowBitsPass());
            passes.addPass(ReciprocalsPass());
            passes.addPass(IterationTablesPass());
        }
        passes.addPass(CastsBeforeShufflesPass());
        passes.addPass(PairedHalvesPass());
        passes.addPass(SplatLoadsPass());
        passes.addPass(DotShiftsPass());
        passes.addPass(KeepNanPass());
        passes.addPass(RoundingCastsPass());
        passes.addPass(FieldsPass());
        passes.addPass(llvm::EarlyCSEPass());
        passes.addPass(llvm::SimplifyCFGPass());
    }
    for (llvm::Function& function : module) {
        if (!function.isDeclaration()) {
            passes.run(function, functions);
        }
    }
    if (!machine.getTargetFeatureString().contains("+avx512fp16")) {
        HideHalfMinima(module);
    }
    if (tier == CodeTier::kBaseline) {
        LoadVectorConstants(module);
    }
    return OkStatus();
}

}  // namespace fornax::kernel
