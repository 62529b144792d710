// The order of the passes.
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {

namespace {

// Unrolling stops here; every instruction costs LLVM far more than the passes.
constexpr uint32_t kMaxUnrolledInstructions = 20'000;
// An inner loop's trip count may depend on an outer, unrolled loop's counter.
constexpr int kMaxUnrollPasses = 3;
// What a loop carries that computes a tile in registers.
constexpr uint32_t kTileValues = 8;
constexpr uint32_t kRegistersOfAvx512 = 32;

}  // namespace

void RunFirstPasses(ir::Kernel& kernel, uint32_t vector_registers) {
    RemoveEndlessBounds(kernel);
    PromoteLocals(kernel);
    Simplify(kernel);
    if (vector_registers >= kRegistersOfAvx512) {
        ReplaceTanhSums(kernel);
    }
    FuseSums(kernel);
    if (DistributeLoops(kernel)) {
        PromoteLocals(kernel);
        Simplify(kernel);
    }
    kernel.Compact();
}

void RunOtherPasses(ir::Kernel& kernel,
                    CodeTier tier,
                    uint32_t vector_registers,
                    JoinedMmas joined) {
    for (int pass = 0; pass < kMaxUnrollPasses; ++pass) {
        if (!UnrollLoops(kernel, kMaxUnrolledInstructions, tier)) {
            break;
        }
        Simplify(kernel);
        if (!kernel.locals.empty()) {
            PromoteLocals(kernel);
            Simplify(kernel);
        }
    }
    if (ChainHalfSums(kernel)) {
        Simplify(kernel);
    }
    MakeConstantTables(kernel);
    if (SelectElements(kernel)) {
        PromoteLocals(kernel);
        Simplify(kernel);
    }
    if (tier == CodeTier::kOptimized) {
        if (VersionStrides(kernel)) {
            Simplify(kernel);
        }
        if (JoinGuards(kernel)) {
            Simplify(kernel);
        }
    }
    CombineMemoryAccesses(kernel);
    Simplify(kernel);
    if (tier == CodeTier::kOptimized) {
        if (SplitLoops(kernel, vector_registers)) {
            Simplify(kernel);
        }
        if (UnrollPartly(kernel, kTileValues)) {
            Simplify(kernel);
        }
        if (VersionDivisions(kernel)) {
            Simplify(kernel);
        }
        if (BypassLoops(kernel)) {
            Simplify(kernel);
        }
        if (joined != JoinedMmas::kNone && JoinIterations(kernel, joined)) {
            Simplify(kernel);
        }
    }
    IsolateBarrierTails(kernel);
    SplitBarrierBranches(kernel);
    kernel.Compact();
}

void RunPipeline(ir::Kernel& kernel, uint32_t vector_registers, JoinedMmas joined) {
    RunFirstPasses(kernel, vector_registers);
    RunOtherPasses(kernel, CodeTier::kOptimized, vector_registers, joined);
}

}  // namespace fornax::kernel
