// Plans on the software device through its command stream, against the graph's interpreter, bit for
// bit: numbers are small and whole.
#include "runtime/hal/hal_recording.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/builder.h"
#include "compiler/graph/build/convolve.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/interpret_plan.h"
#include "compiler/graph/testing/random_graph.h"
#include "compiler/graph/testing/random_tensor.h"
#include "runtime/hal/hal_fixture.h"

namespace fornax::runtime {
namespace {

using graph::ElementType;
using graph::Expr;
using graph::Graph;
using graph::Shape;
using graph::Tensor;
using graph::Val;
using testing::HasSubstr;

class HalPlayer : public testing::Test {
  protected:
    std::shared_ptr<const HalProgram> Make(graph::Plan plan) {
        auto program = bench_.Make(std::move(plan));
        EXPECT_TRUE(program.ok()) << program.error().message;
        return program.ok() ? *program : nullptr;
    }
    std::shared_ptr<const HalProgram> Compile(const Graph& graph,
                                              const graph::CompileOptions& options = {}) {
        Result<graph::Plan> plan = graph::Compile(graph, options);
        EXPECT_TRUE(plan.ok()) << plan.error().message;
        return plan.ok() ? Make(*std::move(plan)) : nullptr;
    }
    void Check(const Graph& graph,
               const std::shared_ptr<const HalProgram>& program,
               const std::vector<Tensor>& inputs) {
        const Result<std::vector<Tensor>> expected = graph::Interpret(graph, inputs);
        ASSERT_TRUE(expected.ok()) << expected.error().message;
        HalBench::States states;
        const Result<std::vector<Tensor>> actual = bench_.Play(program, inputs, states);
        ASSERT_TRUE(actual.ok()) << actual.error().message;
        ASSERT_EQ(actual->size(), expected->size());
        for (size_t i = 0; i < actual->size(); ++i) {
            EXPECT_EQ(graph::testing::Difference((*actual)[i], (*expected)[i], 0), "") << i;
        }
    }
    Tensor Random(const std::vector<int64_t>& dims, int64_t most = 4) {
        return graph::testing::MakeRandomTensor(random_, ElementType::kF32, dims, -most, most);
    }

    std::mt19937_64 random_{7};
    HalBench bench_;
};

// One plan for several sizes, among them none.
TEST_F(HalPlayer, ElementwiseChains) {
    Graph graph;
    const graph::Symbol n = graph.sizes().Declare("n", 100);
    graph::Builder builder(graph);
    const Val x = builder.Input("x", {ElementType::kF32, {Expr(n), 3}});
    const Val y = graph::Relu(x * graph::Like(x, 2) + builder.Constant(Random({3})));
    graph.AddOutput("y", y.id());
    graph.AddOutput("sums", graph::Sum(y - x, {1}).id());
    const auto program = Compile(graph, {.dynamic_sizes = {"n"}});
    ASSERT_NE(program, nullptr);
    for (const int64_t size : {100, 1, 1001, 0, 64}) {
        SCOPED_TRACE(size);
        Check(graph, program, {Random({size, 3})});
    }
}

TEST_F(HalPlayer, Products) {
    Graph graph;
    graph::Builder builder(graph);
    const Val x = builder.Input("x", {ElementType::kF32, Shape{70, 130}});
    const Val hidden =
        graph::Relu(graph::Contract(x, builder.Constant(Random({130, 260}, 2)), "ik,kj->ij"));
    graph.AddOutput(
        "y", graph::Contract(hidden, builder.Constant(Random({260, 33}, 2)), "ik,kj->ij").id());
    const auto program = Compile(graph);
    ASSERT_NE(program, nullptr);
    Check(graph, program, {Random({70, 130})});
    EXPECT_GE(bench_.packet_count(), 5u);  // two dispatches, each with what it needs, and a barrier
}

TEST_F(HalPlayer, ConvolutionNets) {
    Graph graph;
    graph::Builder builder(graph);
    Val x = builder.Input("x", {ElementType::kF32, Shape{2, 3, 19, 17}});
    const auto convolve = [&](Val in, int64_t channels, int64_t stride) {
        const int64_t from = *in.dim(1).constant();
        const graph::SpatialWindow window = {{3, 3}, {stride, stride}, {1, 1}, {1, 1}, {1, 1}};
        return graph::Relu(graph::Convolve(in, builder.Constant(Random({channels, from, 3, 3}, 2)),
                                           builder.Constant(Random({channels})), window, 1,
                                           ElementType::kF32));
    };
    x = convolve(x, 16, 2);
    x = x + convolve(x, 16, 1);
    x = convolve(x, 24, 1);
    graph.AddOutput("y", x.id());
    graph.AddOutput("pooled", graph::GlobalMaxPool(x).id());
    const auto program = Compile(graph);
    ASSERT_NE(program, nullptr);
    Check(graph, program, {Random({2, 3, 19, 17})});
}

TEST_F(HalPlayer, Templates) {
    Graph graph;
    graph::Builder builder(graph);
    const Val x = builder.Input("x", {ElementType::kF32, Shape{3, 1500}});
    const graph::Sorted sorted = graph::Sort(x, 1, true, 1500);
    graph.AddOutput("values", sorted.values.id());
    graph.AddOutput("positions", sorted.positions.id());
    graph.AddOutput("sums", graph::Scan(graph::Combine::kSum, x, 1).id());
    Result<graph::Plan> plan = graph::Compile(graph, {});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_TRUE(std::ranges::any_of(plan->kernels, [](const graph::PlanKernel& kernel) {
        return kernel.of_template.has_value();
    }));
    const auto program = Make(*std::move(plan));
    ASSERT_NE(program, nullptr);
    Check(graph, program, {Random({3, 1500}, 100)});
}

// A block that is several outputs is copied, and so are inputs and constants that are outputs.
TEST_F(HalPlayer, OutputsThatAreTheSame) {
    Graph graph;
    graph::Builder builder(graph);
    const Val x = builder.Input("x", {ElementType::kF32, Shape{5}});
    const Val y = x + x;
    graph.AddOutput("y", y.id());
    graph.AddOutput("again", y.id());
    graph.AddOutput("x", x.id());
    graph.AddOutput("constant", builder.Constant(Random({7})).id());
    const auto program = Compile(graph);
    ASSERT_NE(program, nullptr);
    Check(graph, program, {Random({5})});
}

TEST_F(HalPlayer, StatesKeepTheirValues) {
    Graph graph;
    graph::Builder builder(graph);
    const graph::TensorType bytes = {ElementType::kI8, Shape{7}};
    const Val x = builder.Input("x", bytes);
    const Val before = builder.AddOne(graph::op::ReadState{"total", bytes}, {});
    const Val total = before + x;
    builder.Add(graph::op::WriteState{"total"}, {total});
    graph.AddOutput("y", total.id());
    Result<graph::Plan> plan = graph::Compile(graph, {});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const std::vector<Tensor> inputs = {
        graph::testing::MakeRandomTensor(random_, ElementType::kI8, {7}, -9, 9)};
    const auto run_three_times = [&](const graph::Plan& from, int64_t initial) {
        const auto program = Make(from);
        ASSERT_NE(program, nullptr);
        HalBench::States states;
        for (int64_t run = 1; run <= 3; ++run) {
            const Result<std::vector<Tensor>> actual = bench_.Play(program, inputs, states);
            ASSERT_TRUE(actual.ok()) << actual.error().message;
            for (int64_t i = 0; i < 7; ++i) {
                EXPECT_EQ((*actual)[0].At(i).integer, initial + run * inputs[0].At(i).integer) << i;
            }
        }
    };
    run_three_times(*plan, 0);
    for (graph::PlanBlock& block : plan->blocks) {
        if (block.kind == graph::BlockKind::kState) {
            block.data = std::make_shared<const std::vector<uint8_t>>(7, 3);
        }
    }
    run_three_times(*plan, 3);
}

// The same program in one stream twice, once as a stream that is chained: what a driver's secondary
// command buffers are.
TEST_F(HalPlayer, StreamsHoldManyRuns) {
    Graph graph;
    graph::Builder builder(graph);
    const Val x = builder.Input("x", {ElementType::kF32, Shape{64}});
    graph.AddOutput("y", (x + x).id());
    const auto program = Compile(graph);
    ASSERT_NE(program, nullptr);
    const auto recording = HalRecording::Create(program, {});
    ASSERT_TRUE(recording.ok()) << recording.error().message;
    const auto memory = bench_.device().AllocateMemory(3 * 256);
    ASSERT_TRUE(memory.ok());
    auto* const values = reinterpret_cast<float*>((*memory)->host_pointer());
    std::fill_n(values, 64, 3.0F);
    const uint64_t first = (*memory)->address(), second = first + 256, third = second + 256;
    hal::CommandStreamBuilder chained, stream;
    ASSERT_TRUE(recording->Record({0, {second}, {third}, {}}, chained).ok());
    const auto secondary = chained.Finish();
    ASSERT_TRUE(secondary.ok());
    ASSERT_TRUE(recording->Record({0, {first}, {second}, {}}, stream).ok());
    stream.Barrier();
    stream.Chain(*secondary);
    const Status done = bench_.Submit(stream);
    ASSERT_TRUE(done.ok()) << done.error().message;
    EXPECT_EQ(values[2 * 64], 12.0F);
    EXPECT_EQ(values[3 * 64 - 1], 12.0F);
}

TEST_F(HalPlayer, MistakesAreErrors) {
    Graph graph;
    graph::Builder builder(graph);
    const Val x = builder.Input("x", {ElementType::kF32, Shape{64}});
    graph.AddOutput("y", (x + x).id());
    const auto program = Compile(graph);
    ASSERT_NE(program, nullptr);
    const auto recording = HalRecording::Create(program, {});
    ASSERT_TRUE(recording.ok());
    hal::CommandStreamBuilder stream;
    const auto error_of = [&](const PlanAddresses& addresses) {
        const Status status = recording->Record(addresses, stream);
        return status.ok() ? std::string() : status.error().message;
    };
    EXPECT_EQ(error_of({0, {}, {4096}, {}}), "0 addresses of inputs are given; the plan has 1.");
    EXPECT_EQ(error_of({0, {4096}, {}, {}}), "0 addresses of outputs are given; the plan has 1.");
    EXPECT_EQ(error_of({0, {4096}, {4096}, {1}}),
              "1 addresses of states are given; the plan has 0.");
    EXPECT_THAT(
        error_of({0, {4096}, {4104}, {}}),
        HasSubstr("of 256 bytes is to be at the address 0x1008, which is no multiple of 16."));
    EXPECT_THAT(error_of({0, {0}, {4096}, {}}), HasSubstr("at the address 0x0"));
    EXPECT_EQ(stream.packet_count(), 0u);

    graph::Plan on_host = program->plan();
    graph::HostStep step;
    step.name = "a_host_step";
    step.reason = "a test";
    on_host.steps.emplace_back(step);
    const auto refused = bench_.Make(on_host);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(refused.error().message, HasSubstr("runs a_host_step on the host (a test)"));
}

// Those that need the host, which is a few, are played there.
TEST_F(HalPlayer, RandomGraphs) {
    size_t on_device = 0, on_host = 0;
    const graph::testing::LoadPlan load = [&](graph::Plan plan) -> Result<graph::testing::RunPlan> {
        if (!CheckRecordable(plan).ok()) {
            ++on_host;
            return graph::testing::RunPlan(
                [plan, states = std::make_shared<graph::testing::PlanStates>()](
                    std::span<const Tensor> inputs) {
                    return graph::testing::InterpretPlan(plan, inputs, {}, {}, states.get());
                });
        }
        ++on_device;
        FORNAX_ASSIGN_OR_RETURN(std::shared_ptr<const HalProgram> program,
                                bench_.Make(std::move(plan)));
        return graph::testing::RunPlan(
            [this, program, states = std::make_shared<HalBench::States>()](
                std::span<const Tensor> inputs) { return bench_.Play(program, inputs, *states); });
    };
    for (uint64_t seed = 1; seed <= 60; ++seed) {
        EXPECT_EQ(graph::testing::CheckRandomGraph(seed, load), "");
    }
    EXPECT_GT(on_device, 10 * on_host);
}

}  // namespace
}  // namespace fornax::runtime
