// Invocations that go different ways between barriers, out of one construct or several: what such
// kernels give stays, and control flow that holds barriers is left to values that all have.
#include <gtest/gtest.h>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/analysis/lane_patterns.h"
#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/interpret/test_dispatch.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/barrier_kernels.h"
#include "compiler/kernel/transform/barrier_paths.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"

namespace fornax::kernel {
namespace {

void Split(ir::Kernel& kernel) {
    SplitBarrierBranches(kernel);
}

std::vector<uint8_t> Execute(const ir::Kernel& kernel, uint64_t seed) {
    TestDispatch dispatch(kernel, seed, false);
    Status status = Interpret(kernel, dispatch.frame(), 0, TestDispatch::kWorkgroups, {20'000'000});
    EXPECT_TRUE(status.ok()) << status.error().message << ir::PrintKernel(kernel);
    return dispatch.memory();
}

// Branches that are run once for the workgroup on a value that may differ, though nothing says that
// it does not.
size_t CountParted(const ir::Kernel& kernel) {
    const std::vector<bool> level = FindWorkgroupLevel(kernel);
    const LaneAnalysis patterns(kernel, 16, level);
    const Structure structure(kernel);
    BarrierPaths paths(kernel, structure);
    size_t count = 0;
    for (ir::InstId id : structure.preorder) {
        const ir::Instruction& inst = kernel.inst(id);
        if (!level[id.value()] || (inst.op != ir::Op::kIf && inst.op != ir::Op::kSwitch)) {
            continue;
        }
        const LanePattern& pattern = patterns.pattern(inst.operands[0]);
        if (!(pattern.uniform() && pattern.workgroup) && !paths.TakenTogether(id)) {
            ++count;
        }
    }
    return count;
}

class BarrierRests : public testing::TestWithParam<BarrierKernel> {};

TEST_P(BarrierRests, GiveTheSame) {
    ir::Kernel kernel = Parsed(BarrierKernelText(GetParam()));
    EXPECT_EQ(CountParted(kernel), GetParam().parted);
    const std::vector<uint8_t> before = Execute(kernel, 1);
    IsolateBarrierTails(kernel);
    SplitBarrierBranches(kernel);
    Status status = ir::Verify(kernel);
    ASSERT_TRUE(status.ok()) << status.error().message << ir::PrintKernel(kernel);
    EXPECT_EQ(CountParted(kernel), 0u);
    EXPECT_EQ(Execute(kernel, 1), before) << ir::PrintKernel(kernel);
    RunPipeline(kernel);
    EXPECT_EQ(Execute(kernel, 1), before) << ir::PrintKernel(kernel);
}

INSTANTIATE_TEST_SUITE_P(Kernels,
                         BarrierRests,
                         testing::ValuesIn(kBarrierKernels),
                         [](const auto& info) { return std::string(info.param.name); });

// Loops that all leave together by the rules of barriers are left as they are.
TEST(BarrierRest, WhatMeetsABarrierIsTakenTogether) {
    const std::string text = R"(
        %z:i32 = const 0
        %one:i32 = const 1
        %i:i32 = builtin local_id_x
        %mine:bool = ieq %i, %z
        loop @0 (%k:i32 = %i) {
            %c:bool = ult %k, %one
            if %c { yield } else { exit @0 }
            %d:bool = ieq %k, %i
            if %d { store_shared %z, %i align(4) yield } else { yield }
            barrier
            continue @0
        } continuing () { %n:i32 = iadd %k, %one next %n }
        loop @1 () {
            barrier
            continue @1
        } continuing () { if %mine { exit @1 } else { yield } next }
        scope @2 {
            if %mine { exit @2 } else { store_shared %z, %i align(4) barrier yield }
            yield
        }
        return)";
    ExpectPass(Split, "", text, "", text);
}

}  // namespace
}  // namespace fornax::kernel
