// Random kernels give the same bytes before and after every pass.
#include <gtest/gtest.h>

#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/interpret/random_kernel.h"
#include "compiler/kernel/interpret/test_dispatch.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/cleanup.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

#ifdef NDEBUG
constexpr uint64_t kSeeds = 500;
#else
constexpr uint64_t kSeeds = 100;  // debug and sanitiser builds are slow
#endif

struct Pass {
    const char* name;
    void (*run)(ir::Kernel&);
};

class Differential : public testing::TestWithParam<Pass> {};

std::vector<uint8_t> Execute(const ir::Kernel& kernel, uint64_t seed, bool overlap) {
    TestDispatch dispatch(kernel, seed, overlap);
    Status status = Interpret(kernel, dispatch.frame(), 0, TestDispatch::kWorkgroups, {20'000'000});
    EXPECT_TRUE(status.ok()) << status.error().message;
    return dispatch.memory();
}

TEST_P(Differential, KeepsWhatKernelsDo) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        RandomKernelOptions options;
        options.portable = seed % 2 == 0;
        options.subgroup_operations = seed % 4 == 0;  // races would show the schedule
        options.statements = seed % 10 == 0 ? 150 : 40;
        ir::Kernel kernel = RandomKernel(seed, options);
        std::vector<uint8_t> expected = Execute(kernel, seed, !options.portable);
        std::string before = ir::PrintKernel(kernel);
        GetParam().run(kernel);
        Status status = ir::Verify(kernel);
        ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.error().message << "\n"
                                 << before << ir::PrintKernel(kernel);
        ASSERT_EQ(Execute(kernel, seed, !options.portable), expected)
            << "seed " << seed << "\n"
            << before << ir::PrintKernel(kernel);
    }
}

const Pass kPasses[] = {
    {"PromoteLocals", PromoteLocals},
    {"Simplify", Simplify},
    {"EliminateDeadCode", EliminateDeadCode},
    {"ForwardSingleValues", ForwardSingleValues},
    {"UnrollLoops", [](ir::Kernel& kernel) { UnrollLoops(kernel, 20'000); }},
    {"UnrollPromoted",
     [](ir::Kernel& kernel) {
         PromoteLocals(kernel);
         Simplify(kernel);
         UnrollLoops(kernel, 20'000);
     }},
    {"MakeConstantTables", MakeConstantTables},
    {"SelectElements",
     [](ir::Kernel& kernel) {
         if (SelectElements(kernel)) {
             PromoteLocals(kernel);
         }
     }},
    {"IsolateBarrierTails", IsolateBarrierTails},
    {"SplitBarrierBranches", SplitBarrierBranches},
    {"CombineMemoryAccesses", CombineMemoryAccesses},
    {"CombineSimplified",
     [](ir::Kernel& kernel) {
         PromoteLocals(kernel);
         Simplify(kernel);
         CombineMemoryAccesses(kernel);
     }},
    {"VersionStrides",
     [](ir::Kernel& kernel) {
         PromoteLocals(kernel);
         Simplify(kernel);
         VersionStrides(kernel);
     }},
    {"JoinGuards",
     [](ir::Kernel& kernel) {
         PromoteLocals(kernel);
         Simplify(kernel);
         JoinGuards(kernel);
     }},
    {"FuseSums", FuseSums},
    {"BaselinePipeline",
     [](ir::Kernel& kernel) {
         RunFirstPasses(kernel);
         RunOtherPasses(kernel, CodeTier::kBaseline);
     }},
    {"SplitLoops",
     [](ir::Kernel& kernel) {
         if (SplitLoops(kernel, 2)) {
             Simplify(kernel);
         }
     }},
    {"UnrollPartly",
     [](ir::Kernel& kernel) {
         PromoteLocals(kernel);
         Simplify(kernel);
         UnrollPartly(kernel, 1);
     }},
    {"VersionDivisions",
     [](ir::Kernel& kernel) {
         PromoteLocals(kernel);
         Simplify(kernel);
         VersionDivisions(kernel);
     }},
    {"Pipeline", [](ir::Kernel& kernel) { RunPipeline(kernel); }},
    {"PipelineFewRegisters", [](ir::Kernel& kernel) { RunPipeline(kernel, 4); }},
};

INSTANTIATE_TEST_SUITE_P(Passes, Differential, testing::ValuesIn(kPasses), [](const auto& info) {
    return std::string(info.param.name);
});

}  // namespace
}  // namespace fornax::kernel
