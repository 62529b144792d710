// ValidatePlan: each rule of kernels, dispatches and host steps, broken once.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/plan/limits.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/graph/plan/test_plan.h"

namespace fornax::graph {
namespace {

using ::testing::HasSubstr;

struct Case {
    const char* message;
    std::function<void(Plan&)> breaks;
};

void ExpectAllRefused(const std::vector<Case>& cases) {
    for (const Case& test : cases) {
        Plan plan = MakeTestPlan();
        test.breaks(plan);
        const Status status = ValidatePlan(plan);
        ASSERT_FALSE(status.ok()) << test.message;
        EXPECT_THAT(status.error().message, HasSubstr(test.message));
        EXPECT_TRUE(status.error().message.ends_with('.')) << status.error().message;
    }
}

const Symbol n("n"), m("m");

TEST(ValidatePlanStepsTest, Kernels) {
    ExpectAllRefused({
        {"kernel 0: The kernel add is wrong in store 0: an operand does not exist.",
         [](Plan& plan) { plan.kernels[0].loop.stores[0].value = loop::ScalarId(7); }},
        {"kernel 0 (add) takes n from 1 to 99, which the plan does not promise",
         [](Plan& plan) { plan.kernels[0].loop.sizes[n].high = 99; }},
        {"kernel 0 (add) takes n from 2 to 100",
         [](Plan& plan) { plan.kernels[0].loop.sizes[n].low = 2; }},
        {"kernel 0 (add) takes k from 0 to 1",
         [](Plan& plan) { plan.kernels[0].loop.sizes[Symbol("k")] = {0, 1}; }},
        {"step 0 (sum): its kernel uses m, which has no value by then",
         [](Plan& plan) { plan.kernels[0].loop.sizes[m] = {0, 1000}; }},
    });
}

TEST(ValidatePlanStepsTest, Dispatches) {
    ExpectAllRefused({
        {"step 0 (sum): its kernel does not exist",
         [](Plan& plan) { DispatchOf(plan, 0).kernel = KernelId(2); }},
        {"step 0 (sum): it binds 2 blocks to the 3 buffers of add",
         [](Plan& plan) { DispatchOf(plan, 0).bindings.pop_back(); }},
        {"step 0 (sum): the buffer a names a block that does not exist",
         [](Plan& plan) { DispatchOf(plan, 0).bindings[0] = BlockId(8); }},
        {"step 2 (copy): the buffer a sees block 5 (positions) as f32[8*n], but it is i64[n,8]",
         [](Plan& plan) { DispatchOf(plan, 2).bindings[0] = BlockId(5); }},
        {"step 2 (copy): the buffer a sees block 1 (w) as f32[8*n], but it is f32[8]",
         [](Plan& plan) { DispatchOf(plan, 2).bindings[0] = BlockId(1); }},
        {"step 2 (copy): it writes block 0 (x), which is an input",
         [](Plan& plan) {
             plan.blocks[0].last = 2;
             DispatchOf(plan, 2).bindings[1] = BlockId(0);
         }},
        {"step 0 (sum): it writes block 1 (w), which is a constant",
         [](Plan& plan) { plan.kernels[0].loop.buffers[1].written = true; }},
        {"step 0 (sum): block 3 (sorted) lives from step 1 to 3",
         [](Plan& plan) { DispatchOf(plan, 0).bindings[2] = BlockId(3); }},
        {"step 2 (copy): block 2 (sum) lives from step 0 to 1",
         [](Plan& plan) { DispatchOf(plan, 2).bindings[0] = BlockId(2); }},
        {"step 0 (sum): block 3 (sorted) is read before it is written",
         [](Plan& plan) {
             plan.blocks[3].first = 0;
             DispatchOf(plan, 0).bindings[0] = BlockId(3);
         }},
        {"step 2 (copy): block 4 (y) uses m, which has no value by then",
         [](Plan& plan) { plan.blocks[4].type.shape = Shape({m}); }},
        {"step 0 (sum): its cost uses k, which is not one of its symbols",
         [](Plan& plan) { DispatchOf(plan, 0).operations = Symbol("k"); }},
        {"has a name of 65537 bytes",
         [](Plan& plan) { DispatchOf(plan, 0).name = std::string(kMaxPlanName + 1, 'a'); }},
    });
}

// A plan where step 2 makes block 3 (sorted) anew in its place, by the kernel in place of `copy`.
Plan SharedBlock(const std::string& kernel) {
    Plan plan = MakeTestPlan();
    plan.kernels[1] = {loop::ParseKernel(kernel).value()};
    plan.steps.emplace_back(
        DispatchStep{"y", KernelId(0), {BlockId(3), BlockId(1), BlockId(4)}, 0, 0, 0});
    for (PlanBlock& block : plan.blocks) {
        block.last = block.last == 4 ? 5 : block.last;
    }
    plan.blocks[3].last = 4;
    DispatchOf(plan, 2).bindings = {BlockId(3), BlockId(3)};
    return plan;
}

TEST(ValidatePlanStepsTest, BlocksThatAreReadAndWritten) {
    const auto kernel = [](const std::string& lines, const std::string& c = "f32[8*n]") {
        return "kernel double(in a: f32[8*n], out c: " + c +
               ")\n  sizes n in 1..100\n  parallel $i0 < 8*n\n" + lines;
    };
    const std::string in_order = "  %0 = load a[$i0]\n  %1 = add %0, %0\n  store c[$i0] = %1\n";
    const Status status = ValidatePlan(SharedBlock(kernel(in_order)));
    EXPECT_TRUE(status.ok()) << status.error().message;
    const std::string cases[] = {
        // Other elements, the same ones and others, all of them, those of one index alone.
        kernel("  %0 = load a[8*n - 1 - $i0]\n  store c[$i0] = %0\n"),
        kernel("  %0 = load a[$i0]\n  %1 = load a[$i0 - 1]\n  %2 = add %0, %1\n"
               "  store c[$i0] = %2\n"),
        kernel("  %0 = load a[$i0]\n  %1 = load a[$r0]\n  %2 = reduce sum $r0 < 8 of %1\n"
               "  %3 = add %0, %2\n  store c[$i0] = %3\n"),
        kernel("  %0 = load a[0]\n  store c[0] = %0\n"),
        // What it writes is read too.
        kernel("  %0 = load a[$i0]\n  %1 = load c[$i0]\n  %2 = add %0, %1\n"
               "  store c[$i0] = %2\n"),
    };
    for (const std::string& text : cases) {
        const Status refused = ValidatePlan(SharedBlock(text));
        ASSERT_FALSE(refused.ok()) << text;
        EXPECT_THAT(refused.error().message,
                    HasSubstr("step 2 (copy): its buffers a and c are one block, of which it might "
                              "read elements that it has written."));
    }
    // Two results, whatever they hold.
    const Status twice = ValidatePlan(
        SharedBlock("kernel two(out b: f32[8*n], out c: f32[8*n])\n  sizes n in 1..100\n"
                    "  parallel $i0 < 8*n\n  %0 = constant f32 1\n  store b[$i0] = %0\n"
                    "  store c[$i0] = %0\n"));
    ASSERT_FALSE(twice.ok());
    EXPECT_THAT(twice.error().message, HasSubstr("its buffers c and b are one block"));
    // Sizes that differ are no block's.
    const Status sizes = ValidatePlan(SharedBlock(kernel(in_order, "f32[4*n]")));
    ASSERT_FALSE(sizes.ok());
    EXPECT_THAT(sizes.error().message, HasSubstr("sees block 3 (sorted) as f32[4*n]"));
    // After its last step.
    Plan dead = SharedBlock(kernel(in_order));
    dead.blocks[3].last = 3;
    const Status late = ValidatePlan(dead);
    ASSERT_FALSE(late.ok());
    EXPECT_THAT(late.error().message, HasSubstr("block 3 (sorted) lives from step 1 to 3"));
}

TEST(ValidatePlanStepsTest, HostSteps) {
    ExpectAllRefused({
        {"an operand or a result is without its type",
         [](Plan& plan) { HostOf(plan, 1).operand_types.clear(); }},
        {"an operand or a result is without its type",
         [](Plan& plan) { HostOf(plan, 1).result_types.pop_back(); }},
        {"step 1 (sort): it has 4097 operands",
         [](Plan& plan) { HostOf(plan, 1).operands.resize(kMaxHostOperands + 1); }},
        {"step 1 (sort): it has 4097 results",
         [](Plan& plan) { HostOf(plan, 1).results.resize(kMaxHostOperands + 1); }},
        {"step 1 (sort): operand 0 names a block that does not exist",
         [](Plan& plan) { HostOf(plan, 1).operands[0] = BlockId(8); }},
        {"step 1 (sort): result 1 names a block that does not exist",
         [](Plan& plan) { HostOf(plan, 1).results[1] = BlockId(8); }},
        {"step 3 (unique): operand 0 sees block 3 (sorted) as f32[9*n]",
         [](Plan& plan) { HostOf(plan, 3).operand_types[0].shape[0] = 9 * Expr(n); }},
        {"step 1 (sort): operand 0 is of a type that does not exist",
         [](Plan& plan) {
             HostOf(plan, 1).operand_types[0].element = static_cast<ElementType>(99);
         }},
        {"step 1 (sort): block 4 (y) lives from step 2 to 4",
         [](Plan& plan) { HostOf(plan, 1).results[0] = BlockId(4); }},
        {"step 3 (unique): it writes block 1 (w), which is a constant",
         [](Plan& plan) { HostOf(plan, 3).results[0] = BlockId(1); }},
        {"step 1 (sort): the axis 2 is not one of [n,8]",
         [](Plan& plan) { HostOf(plan, 1).operation = op::Sort{2, true, n}; }},
        {"step 1 (sort): its result 0 is f32[5,8], not f32[n,8]",
         [](Plan& plan) {
             HostOf(plan, 1).operation = op::Sort{0, true, 5};
             plan.guards.push_back({Relation::kLessEqual, 5, n});
             plan.hints[n] = 9;
         }},
        {"step 1 (sort): its types are right only for",
         [](Plan& plan) {
             HostOf(plan, 1).operation = op::Sort{0, true, 5};
             plan.hints[n] = 9;
         }},
        {"step 1 (sort): it has 2 results, not 1",
         [](Plan& plan) { HostOf(plan, 1).operation = op::Cast{ElementType::kI32}; }},
        {"step 1 (sort): states are not for the host",
         [](Plan& plan) { HostOf(plan, 1).operation = op::WriteState{"s"}; }},
        {"step 1 (sort): a body is missing",
         [](Plan& plan) { HostOf(plan, 1).bodies.push_back(nullptr); }},
        {"The output r of the graph body is computed by no node.",
         [](Plan& plan) {
             Graph body("body");
             body.AddOutput("r", ValueId(3));
             HostOf(plan, 1).bodies.push_back(std::make_shared<const Graph>(std::move(body)));
         }},
        {"step 3 (unique): block 6 (unique) uses k, which has no value by then",
         [](Plan& plan) {
             const Expr k = Symbol("k");
             plan.ranges[Symbol("k")] = {0, 100};
             const TensorType type = {ElementType::kF32, Shape({k + 1})};
             HostOf(plan, 3).operation = op::HostCall{"Unique", {}, {type}};
             HostOf(plan, 3).result_types = {type};
             plan.blocks[6].type = type;
         }},
    });
}

// The scheduler writes no step for a tensor without elements.
TEST(ValidatePlanStepsTest, EmptyBlocksNeedNotBeWritten) {
    Plan plan = MakeTestPlan();
    const TensorType empty = {ElementType::kF32, Shape({n, 0})};
    plan.blocks.push_back({"empty", empty, BlockKind::kOutput, nullptr, nullptr, 0, 4});
    plan.outputs.push_back({"empty", empty, BlockId(8)});
    EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan).error().message;
}

// What a guard makes equal may be bound.
TEST(ValidatePlanStepsTest, GuardsProveSizes) {
    Plan plan = MakeTestPlan();
    const Symbol k("k");
    plan.ranges[k] = {1, 100};
    plan.inputs[0].type.shape = plan.blocks[0].type.shape = Shape({n, k});
    plan.sources.push_back({k, 0, 1});
    EXPECT_THAT(ValidatePlan(plan).error().message,
                HasSubstr("the buffer a sees block 0 (x) as f32[n,8], but it is f32[n,k]"));
    plan.guards.push_back({Relation::kEqual, k, 8});
    EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan).error().message;
    plan.guards.back().relation = Relation::kLessEqual;
    EXPECT_FALSE(ValidatePlan(plan).ok());
}

}  // namespace
}  // namespace fornax::graph
