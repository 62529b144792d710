// Kernels whose invocations part between barriers and carry with them where they are: what they
// give stays, no branch around a barrier depends on an invocation, and nothing is copied.
#include <gtest/gtest.h>

#include "compiler/kernel/analysis/barrier_regions.h"
#include "compiler/kernel/analysis/lane_patterns.h"
#include "compiler/kernel/interpret/interpret.h"
#include "compiler/kernel/interpret/test_dispatch.h"
#include "compiler/kernel/ir/text.h"
#include "compiler/kernel/ir/verify.h"
#include "compiler/kernel/transform/barrier_kernels.h"
#include "compiler/kernel/transform/pass_test_util.h"
#include "compiler/kernel/transform/passes.h"
#include "compiler/kernel/transform/structure.h"

namespace fornax::kernel {
namespace {

std::vector<uint8_t> Execute(const ir::Kernel& kernel) {
    TestDispatch dispatch(kernel, 1, false);
    Status status = Interpret(kernel, dispatch.frame(), 0, TestDispatch::kWorkgroups, {50'000'000});
    EXPECT_TRUE(status.ok()) << status.error().message;
    return dispatch.memory();
}

bool IsUniformAroundBarriers(const ir::Kernel& kernel) {
    const std::vector<bool> level = FindWorkgroupLevel(kernel);
    const LaneAnalysis patterns(kernel, 16, level);
    for (ir::InstId id : Structure(kernel).preorder) {
        const ir::Instruction& inst = kernel.inst(id);
        if (!level[id.value()] || (inst.op != ir::Op::kIf && inst.op != ir::Op::kSwitch)) {
            continue;
        }
        const LanePattern& pattern = patterns.pattern(inst.operands[0]);
        if (!pattern.uniform() || !pattern.workgroup) {
            return false;
        }
    }
    return true;
}

class BarrierStates : public testing::TestWithParam<BarrierKernel> {};

TEST_P(BarrierStates, GiveTheSame) {
    ir::Kernel kernel = Parsed(BarrierKernelText(GetParam()));
    const std::vector<uint8_t> before = Execute(kernel);
    IsolateBarrierTails(kernel);
    SplitBarrierBranches(kernel, 0);
    Status status = ir::Verify(kernel);
    ASSERT_TRUE(status.ok()) << status.error().message << ir::PrintKernel(kernel);
    EXPECT_TRUE(IsUniformAroundBarriers(kernel)) << ir::PrintKernel(kernel);
    EXPECT_EQ(Execute(kernel), before) << ir::PrintKernel(kernel);
    RunPipeline(kernel);
    EXPECT_EQ(Execute(kernel), before) << ir::PrintKernel(kernel);
}

INSTANTIATE_TEST_SUITE_P(Kernels,
                         BarrierStates,
                         testing::ValuesIn(kBarrierKernels),
                         [](const auto& info) { return std::string(info.param.name); });

// A loop whose iterations each end early for some, in `branches` places with work behind them, and
// a neighbour's value at its end.
std::string LongKernel(int branches, int work) {
    std::string body = R"(
    %r:i32 = loop @1 (%k:i32 = %z, %s:i32 = %i) {
        store_shared %so, %s align(4)
        barrier
        %t0:i32 = load_shared %no align(4)
        barrier
)";
    int value = 0;
    auto name = [&] { return "%t" + std::to_string(value); };
    for (int branch = 0; branch < branches; ++branch) {
        const std::string number = std::to_string(branch);
        const std::string last = name();
        // Barriers that no invocation meets: nothing says that the branch is taken together.
        body += "%h" + number + ":i32 = imul %i3, %three\n%g" + number + ":i32 = xor " + last +
                ", %h" + number + "\n%m" + number + ":i32 = and %g" + number + ", %five\n%c" +
                number + ":bool = ieq %m" + number + ", %five\nif %c" + number + " { %e" + number +
                ":i32 = iadd " + last + ", %k continue @1 %e" + number + " } else { yield }\n";
        body += "%never" + number + ":bool = ult %forty, %p\nif %never" + number +
                " { barrier yield } else { yield }\n";
        for (int i = 0; i < work; ++i) {
            const std::string from = name();
            ++value;
            body += name() + ":i32 = " + (i % 2 ? "imul " : "iadd ") + from + ", %three\n";
        }
    }
    return body + "continue @1 " + name() + R"(
    } continuing (%v:i32) {
        %next:i32 = iadd %k, %one
        %end:bool = ieq %next, %four
        if %end { exit @1 %v } else { yield }
        next %next, %v
    })";
}

// With copies it would be a hundred times as long; compiled as if all invocations took the branches
// together, it gave other values.
TEST(BarrierStates, WhereCopiesAreTooLong) {
    const std::string body = LongKernel(40, 30);
    ir::Kernel kernel = Parsed(BarrierKernelText({"Long", 0, body.c_str()}));
    const std::vector<uint8_t> before = Execute(kernel);
    const uint32_t length = kernel.num_insts();
    IsolateBarrierTails(kernel);
    SplitBarrierBranches(kernel);
    kernel.Compact();
    Status status = ir::Verify(kernel);
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_LT(kernel.num_insts(), 6 * length);
    EXPECT_TRUE(IsUniformAroundBarriers(kernel));
    EXPECT_EQ(Execute(kernel), before);
}

}  // namespace
}  // namespace fornax::kernel
