// Which results lie in the blocks of their operands: by the steps of small graphs.
#include "compiler/graph/schedule/share_blocks.h"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/ir/text.h"
#include "compiler/graph/plan/plan_kernel.h"
#include "compiler/graph/schedule/schedule.h"

namespace fornax::graph {
namespace {

Plan PlanOf(const std::string& text) {
    const Result<Graph> graph = ParseGraph(text);
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().message);
    if (!graph.ok()) {
        return {};
    }
    Result<Plan> plan = Schedule(*graph);
    EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
    if (!plan.ok()) {
        return {};
    }
    const Status status = ValidatePlan(*plan);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
    return std::move(*plan);
}

// Where each step writes to, temporaries by number: "t0 t1 t0 y".
std::string Written(const Plan& plan) {
    std::map<BlockId, std::string> names;
    for (const PlanPort& port : plan.outputs) {
        names.emplace(port.block, port.name);
    }
    size_t temporaries = 0;
    std::string written;
    for (const PlanStep& step : plan.steps) {
        const auto& dispatch = std::get<DispatchStep>(step);
        const std::span<const loop::Buffer> buffers =
            BuffersOf(plan.kernels[dispatch.kernel.value()]);
        for (size_t i = 0; i < buffers.size(); ++i) {
            if (!buffers[i].written) {
                continue;
            }
            const auto [name, inserted] =
                names.try_emplace(dispatch.bindings[i], fmt::format("t{}", temporaries));
            temporaries += inserted ? 1 : 0;
            written += (written.empty() ? "" : " ") + name->second;
        }
    }
    return written;
}

// Products: %2 of x, %3 of %2, %4 of %3; then the lines, whose last value is %`last`, and y is the
// product of that.
Plan Chain(const std::string& lines, int last) {
    constexpr char kHead[] = R"(graph "chain" {
    %0 = input "x" f32[32,64]
    %1 = input "w" f32[64,64]
    %2 = contract "p0" (%0, %1) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[32,64]
    %3 = contract "p1" (%2, %1) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[32,64]
    %4 = contract "p2" (%3, %1) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[32,64]
)";
    const std::string product = fmt::format(
        R"(    %{1} = contract "last" (%{0}, %1) {{a = "ik", b = "kj", result = "ij", accumulate = f32}} : f32[32,64]
    output "y" %{1}
}}
)",
        last, last + 1);
    return PlanOf(kHead + lines + product);
}

TEST(ShareBlocks, ASumTakesItsOperandsBlock) {
    EXPECT_EQ(Written(Chain(R"(    %5 = map "sum" (%4, %2) {function = add} : f32[32,64]
)",
                            5)),
              "t0 t1 t0 y");
    // Also in another shape.
    EXPECT_EQ(Written(Chain(R"(    %5 = reshape "same" (%2) {shape = [2,16,64]} : f32[2,16,64]
    %6 = reshape "same" (%4) {shape = [2,16,64]} : f32[2,16,64]
    %7 = map "sum" (%6, %5) {function = add} : f32[2,16,64]
    %8 = reshape "back" (%7) {shape = [32,64]} : f32[32,64]
)",
                            8)),
              "t0 t1 t0 y");
}

TEST(ShareBlocks, WhatIsReadLaterOrElsewhereKeepsItsBlock) {
    // %2 is read again behind the sum.
    EXPECT_EQ(Written(Chain(R"(    %5 = map "sum" (%4, %2) {function = add} : f32[32,64]
    %6 = contract "p4" (%5, %1) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[32,64]
    %7 = map "sum" (%6, %2) {function = mul} : f32[32,64]
)",
                            7)),
              "t0 t1 t2 t0 y");
    // In another order.
    EXPECT_EQ(Written(Chain(R"(    %5 = reshape "square" (%2) {shape = [2,16,64]} : f32[2,16,64]
    %6 = permute "other" (%5) {order = [1,0,2]} : f32[16,2,64]
    %7 = reshape "rows" (%6) {shape = [32,64]} : f32[32,64]
    %8 = map "sum" (%4, %7) {function = add} : f32[32,64]
)",
                            8)),
              "t0 t1 t2 y");
    // The product's own operand.
    EXPECT_EQ(Written(Chain(R"(    %5 = map "sum" (%4, %3) {function = add} : f32[32,64]
)",
                            5)),
              "t0 t1 t2 y");
}

TEST(ShareBlocks, AnOutputIsComputedInItsOwnMemory) {
    const Plan plan = PlanOf(R"(graph "out" {
    %0 = input "x" f32[32,64]
    %1 = input "w" f32[64,64]
    %2 = contract "p0" (%0, %1) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[32,64]
    %3 = contract "p1" (%2, %1) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[32,64]
    %4 = contract "p2" (%3, %1) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[32,64]
    %5 = map "sum" (%4, %2) {function = add} : f32[32,64]
    output "y" %5
    output "input" %0
}
)");
    EXPECT_EQ(Written(plan), "y t0 y");
    const Result<MemoryPlan> memory = PlanMemory(plan, {});
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(memory->arena_bytes, 32U * 64 * 4);
}

// Nothing else reads the rows that are replaced: they are not copied.
TEST(ShareBlocks, AScatterIntoWhatIsNotReadLaterIsInPlace) {
    const auto scatter = [](const std::string& rest) {
        return R"(graph "scatter" {
    %0 = input "x" f32[32,64]
    %1 = input "w" f32[64,64]
    %2 = input "new" f32[2,64]
    %3 = input "at" i64[2,64]
    %4 = contract "p0" (%0, %1) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[32,64]
)" + rest + "}\n";
    };
    constexpr char kTwo[] =
        R"(    %5 = scatter "one" (%4, %2, %3) {sources = [-1, 1], combine = replace} : f32[32,64]
    %6 = scatter "two" (%5, %2, %3) {sources = [-1, 1], combine = sum} : f32[32,64]
)";
    // To the output's memory.
    Plan plan = PlanOf(scatter(std::string(kTwo) + "    output \"y\" %6\n"));
    EXPECT_EQ(Written(plan), "y y y");
    EXPECT_EQ(plan.kernels.size(), 3U);
    // As a temporary; what reads it earlier changes nothing.
    plan = PlanOf(scatter(
        R"(    %5 = contract "q" (%4, %1) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[32,64]
    %6 = scatter "one" (%4, %2, %3) {sources = [-1, 1], combine = replace} : f32[32,64]
    %7 = contract "p1" (%6, %1) {a = "ik", b = "kj", result = "ij", accumulate = f32} : f32[32,64]
    output "y" %7
    output "q" %5
)"));
    EXPECT_EQ(Written(plan), "t0 q t0 y");
    // The rows are read once more, or are an input or an output: these are copied first.
    plan = PlanOf(scatter(
        std::string(kTwo) +
        R"(    %7 = contract "p1" (%6, %4) {a = "ik", b = "jk", result = "ij", accumulate = f32} : f32[32,32]
    output "y" %7
)"));
    EXPECT_EQ(Written(plan), "t0 t1 t1 t1 y");
    plan = PlanOf(scatter(std::string(kTwo) + "    output \"y\" %6\n    output \"old\" %4\n"));
    EXPECT_EQ(Written(plan), "old y y y");
    plan = PlanOf(scatter(
        R"(    %5 = scatter "one" (%0, %2, %3) {sources = [-1, 1], combine = replace} : f32[32,64]
    output "y" %5
)"));
    EXPECT_EQ(Written(plan), "t0 y y");
}

}  // namespace
}  // namespace fornax::graph
