// Plans on a Vulkan device against the interpreter: every operator by itself, then random graphs.
//
// The device is the one that FORNAX_TEST_DEVICE names, else the loader's first.
#include "tools/runtime/plan_runner.h"

#include <cmath>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "compiler/legacy_graph/compile.h"
#include "compiler/legacy_graph/testing/graph_builder.h"
#include "tools/runtime/random_graph.h"
#include "tools/runtime/reference.h"

namespace fornax::runtime {
namespace {

using legacy_graph::Activation;
using legacy_graph::BinaryFunction;
using legacy_graph::UnaryFunction;
using legacy_graph::ValueId;
using legacy_graph::testing::GraphBuilder;
using legacy_graph::testing::ShapeOf;
namespace op = legacy_graph::op;

class PlanRunnerTest : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        const char* choice = std::getenv("FORNAX_TEST_DEVICE");
        Result<std::unique_ptr<VulkanDevice>> device =
            VulkanDevice::Open(choice != nullptr ? choice : "");
        ASSERT_TRUE(device.ok()) << device.error().message;
        device_ = std::move(*device);
    }
    static void TearDownTestSuite() { device_.reset(); }

    static std::vector<std::vector<float>> RandomInputs(const legacy_graph::Graph& graph,
                                                        float low) {
        std::mt19937 generator(9);
        std::uniform_real_distribution<float> uniform(low, 2);
        std::vector<std::vector<float>> inputs;
        for (ValueId input : graph.inputs()) {
            std::vector<float>& values = inputs.emplace_back(graph[input].type.shape.elements());
            for (float& value : values) {
                value = uniform(generator);
            }
        }
        return inputs;
    }

    // Runs the graph with and without fusion and compares every output with the interpreter's.
    static void Check(const legacy_graph::Graph& graph, float low = -2) {
        const std::vector<std::vector<float>> inputs = RandomInputs(graph, low);
        const std::vector<std::vector<float>> expected = Interpret(graph, inputs);
        for (bool fuse : {true, false}) {
            Result<legacy_graph::Plan> plan = legacy_graph::Compile(graph, {fuse});
            ASSERT_TRUE(plan.ok()) << plan.error().message;
            Result<std::unique_ptr<PlanRunner>> runner = PlanRunner::Create(*device_, *plan, {});
            ASSERT_TRUE(runner.ok()) << runner.error().message;
            std::vector<std::vector<float>> actual;
            for (const legacy_graph::PlanPort& output : plan->outputs) {
                actual.emplace_back(output.type.shape.elements());
            }
            const std::vector<std::span<const float>> in(inputs.begin(), inputs.end());
            const std::vector<std::span<float>> out(actual.begin(), actual.end());
            for (int run = 0; run < 2; ++run) {  // a second run finds the arena used
                const Status status = (*runner)->Run(in, out);
                ASSERT_TRUE(status.ok()) << status.error().message;
                Compare(actual, expected, graph, *plan);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }

    static void Compare(const std::vector<std::vector<float>>& actual,
                        const std::vector<std::vector<float>>& expected,
                        const legacy_graph::Graph& graph,
                        const legacy_graph::Plan& plan) {
        for (size_t o = 0; o < expected.size(); ++o) {
            for (size_t i = 0; i < expected[o].size(); ++i) {
                const float tolerance = 2e-4f * (1 + std::abs(expected[o][i]));
                ASSERT_NEAR(actual[o][i], expected[o][i], tolerance)
                    << "output " << o << ", element " << i << " of\n"
                    << legacy_graph::ToText(graph) << legacy_graph::ToText(plan);
            }
        }
    }

    static std::unique_ptr<VulkanDevice> device_;
};
std::unique_ptr<VulkanDevice> PlanRunnerTest::device_;

TEST_F(PlanRunnerTest, Convolutions) {
    struct Case {
        std::vector<int64_t> x, weight;
        legacy_graph::Window window;
        uint32_t group;
    };
    const Case cases[] = {
        {{2, 3, 9, 11}, {8, 3, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}}, 1},
        {{1, 3, 9, 11}, {11, 3, 3, 2}, {{3, 2}, {2, 3}, {1, 1}, {1, 0, 2, 1}}, 1},
        {{1, 2, 13, 10}, {9, 2, 3, 3}, {{3, 3}, {1, 1}, {2, 3}, {2, 3, 2, 3}}, 1},
        {{2, 6, 7, 7}, {12, 2, 3, 3}, {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, 3},
        {{3, 6, 7, 7}, {6, 1, 3, 3}, {{3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}}, 6},
        {{1, 64, 1, 1}, {64, 64, 1, 1}, {{1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}}, 1},
    };
    for (const Case& c : cases) {
        for (bool bias : {false, true}) {
            GraphBuilder b;
            std::vector<ValueId> operands = {b.Input("x", c.x),
                                             b.Constant("w", c.weight, -0.5f, 0.003f)};
            if (bias) {
                operands.push_back(b.Constant("b", {c.weight[0]}));
            }
            const op::Conv conv{c.window, c.group, {UnaryFunction::kSigmoid}};
            b.graph.AddOutput("y", b.Node("conv", conv, operands));
            Check(b.graph);
        }
    }
}

TEST_F(PlanRunnerTest, Pools) {
    for (op::PoolKind kind : {op::PoolKind::kMax, op::PoolKind::kAverage}) {
        for (bool ceil_mode : {false, true}) {
            for (bool count_include_pad : {false, true}) {
                GraphBuilder b;
                const legacy_graph::Window window{{3, 2}, {2, 3}, {1, 2}, {1, 0, 2, 1}};
                const op::Pool pool{kind, window, ceil_mode, count_include_pad};
                b.graph.AddOutput("y", b.Node("pool", pool, {b.Input("x", {2, 3, 8, 9})}));
                Check(b.graph);
            }
        }
    }
}

TEST_F(PlanRunnerTest, MatrixProducts) {
    const std::pair<std::vector<int64_t>, std::vector<int64_t>> cases[] = {
        {{5, 7}, {7, 9}},          {{1, 64}, {64, 130}},      {{33, 17}, {17, 1}},
        {{64, 64}, {64, 64}},      {{2, 3, 5, 7}, {7, 4}},    {{2, 3, 5, 7}, {2, 3, 7, 4}},
        {{2, 1, 5, 7}, {3, 7, 4}}, {{3, 5, 7}, {2, 1, 7, 4}}, {{2, 1, 2, 3, 9, 5}, {3, 1, 3, 5, 8}},
    };
    for (const auto& [a, c] : cases) {
        for (bool bias : {false, true}) {
            GraphBuilder b;
            std::vector<ValueId> operands = {b.Input("a", a), b.Input("b", c)};
            if (bias) {
                operands.push_back(b.Constant("bias", {c.back()}));
            }
            b.graph.AddOutput("y", b.Node("mm", op::MatMul{{UnaryFunction::kRelu}}, operands));
            Check(b.graph);
        }
    }
}

TEST_F(PlanRunnerTest, FunctionsOfOneValue) {
    for (uint32_t i = 0; i <= static_cast<uint32_t>(legacy_graph::kLastUnaryFunction); ++i) {
        const auto function = static_cast<UnaryFunction>(i);
        const bool positive = function == UnaryFunction::kSqrt || function == UnaryFunction::kLog ||
                              function == UnaryFunction::kReciprocal;
        SCOPED_TRACE(Name(function));
        GraphBuilder b;
        b.graph.AddOutput(
            "y", b.Node("f", op::Unary{{function, -0.5f, 1.25f}}, {b.Input("x", {3, 50})}));
        Check(b.graph, positive ? 0.1f : -2);
    }
}

TEST_F(PlanRunnerTest, FunctionsOfTwoValues) {
    const std::pair<std::vector<int64_t>, std::vector<int64_t>> shapes[] = {
        {{4, 5}, {4, 5}}, {{2, 3, 4}, {4}}, {{2, 3, 4}, {3, 1}},
        {{5, 1}, {1, 6}}, {{}, {2, 3}},     {{2, 3, 2, 1, 2, 3}, {3, 1, 4, 1, 3}},
        {{70, 65}, {}},   {{1, 1}, {1}},    {{2, 1, 3, 1, 2, 1}, {1, 2, 1, 3, 1, 2}},
    };
    for (uint32_t i = 0; i <= static_cast<uint32_t>(legacy_graph::kLastBinaryFunction); ++i) {
        const auto function = static_cast<BinaryFunction>(i);
        SCOPED_TRACE(Name(function));
        for (const auto& [a, c] : shapes) {
            GraphBuilder b;
            const op::Binary binary{function, {UnaryFunction::kTanh}};
            b.graph.AddOutput("y", b.Node("f", binary, {b.Input("a", a), b.Input("b", c)}));
            Check(b.graph, 0.1f);
        }
    }
}

TEST_F(PlanRunnerTest, Axes) {
    for (uint32_t axis : {0u, 1u, 2u}) {
        GraphBuilder b;
        const ValueId x = b.Input("x", {5, 6, 70});
        b.graph.AddOutput("softmax", b.Node("softmax", op::Softmax{axis}, {x}));
        for (op::ReduceKind kind : {op::ReduceKind::kSum, op::ReduceKind::kMean,
                                    op::ReduceKind::kMax, op::ReduceKind::kMin}) {
            b.graph.AddOutput("reduce", b.Node("reduce", op::Reduce{kind, axis, 3 - axis}, {x}));
        }
        b.graph.AddOutput("concat", b.Node("concat", op::Concat{axis}, {x, x, x}));
        Check(b.graph);
    }
}

TEST_F(PlanRunnerTest, Transposes) {
    for (const std::vector<uint32_t>& order :
         {std::vector<uint32_t>{5, 3, 1, 0, 2, 4}, std::vector<uint32_t>{1, 0, 2, 3, 5, 4}}) {
        GraphBuilder b;
        b.graph.AddOutput("y",
                          b.Node("turn", op::Transpose{order}, {b.Input("x", {2, 3, 4, 1, 5, 2})}));
        Check(b.graph);
    }
}

TEST_F(PlanRunnerTest, LongRangesUseTwoGridDirections) {
    GraphBuilder b;
    b.graph.AddOutput("y", b.Relu("relu", b.Input("x", {65536, 65})));
    ASSERT_GT(legacy_graph::Compile(b.graph, {})->dispatches[0].grid[2], 1u);
    Check(b.graph);
}

TEST_F(PlanRunnerTest, GraphWithoutDispatches) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {2, 3});
    b.graph.AddOutput("y", b.Node("flat", op::Reshape{ShapeOf({6})}, {x}));
    b.graph.AddOutput("c", b.Constant("c", {5}));
    Check(b.graph);
}

TEST_F(PlanRunnerTest, RandomGraphs) {
    for (uint32_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
        SCOPED_TRACE(seed);
        Check(RandomGraph(seed));
    }
}

TEST_F(PlanRunnerTest, TimesEveryDispatch) {
    GraphBuilder b;
    const ValueId x = b.Input("x", {64, 64});
    b.graph.AddOutput("y", b.Node("mm", op::MatMul{}, {b.Relu("relu", x), x}));
    const legacy_graph::Plan plan = legacy_graph::Compile(b.graph, {}).value();
    const auto runner = PlanRunner::Create(*device_, plan, {}).value();
    std::vector<float> in(64 * 64, 1), out(64 * 64);
    const std::span<const float> in_span(in);
    const std::span<float> out_span(out);
    ASSERT_TRUE(runner->Run(std::span(&in_span, 1), std::span(&out_span, 1)).ok());
    EXPECT_GT(runner->submit_nanoseconds(), 0);
    if (device_->timestamp_bits() == 0) {
        return;
    }
    ASSERT_EQ(runner->dispatch_nanoseconds().size(), 2u);
    double sum = 0;
    for (double time : runner->dispatch_nanoseconds()) {
        EXPECT_GE(time, 0);
        sum += time;
    }
    EXPECT_GT(sum, 0);
    EXPECT_LE(sum, runner->submit_nanoseconds());
}

}  // namespace
}  // namespace fornax::runtime
