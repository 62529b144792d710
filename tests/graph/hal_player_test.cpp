// The two players of plans, on a Vulkan device of Fornax and on the HAL's command stream: the same
// kernels, so the same bits, also where sums are rounded.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/builder.h"
#include "compiler/graph/build/convolve.h"
#include "compiler/graph/build/normalise.h"
#include "compiler/graph/compile.h"
#include "runtime/hal/hal_fixture.h"
#include "runtime/player_fixture.h"

namespace fornax::runtime {
namespace {

using graph::ElementType;
using graph::Graph;
using graph::Tensor;
using graph::Val;

class BothPlayers : public PlayerTest {
  protected:
    Tensor Random(const std::vector<int64_t>& dims) {
        int64_t count = 1;
        for (const int64_t dim : dims) {
            count *= dim;
        }
        std::normal_distribution<float> normal;
        std::vector<float> values(static_cast<size_t>(count));
        for (float& value : values) {
            value = normal(random_);
        }
        return Tensor::FromFloats(dims, values);
    }
    void Check(const Graph& graph, const std::vector<Tensor>& inputs, int runs = 1) {
        const Result<graph::Plan> plan = graph::Compile(graph, {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        const auto program = bench_.Make(*plan);
        ASSERT_TRUE(program.ok()) << program.error().message;
        Session session(Make(*plan));
        HalBench::States states;
        for (int run = 0; run < runs; ++run) {
            const std::vector<Tensor> expected = Run(session, inputs);
            const Result<std::vector<Tensor>> actual = bench_.Play(*program, inputs, states);
            ASSERT_TRUE(actual.ok()) << actual.error().message;
            ASSERT_EQ(actual->size(), expected.size());
            for (size_t i = 0; i < expected.size(); ++i) {
                EXPECT_EQ((*actual)[i].dims, expected[i].dims);
                EXPECT_TRUE(std::ranges::equal(*(*actual)[i].data, *expected[i].data)) << i;
            }
        }
    }

    std::mt19937_64 random_{3};
    HalBench bench_;
};

// What the driver tells of the device is what the HAL's player takes for granted.
TEST_F(BothPlayers, KernelsAreForTheSameTarget) {
    const graph::loop::Target vulkan = TargetOf(*device_);
    const graph::loop::Target hal = TargetOf(bench_.device().capabilities());
    const auto& [subgroup_size, max_workgroup_count, max_workgroup_memory, int64, float64,
                 storage_8bit, storage_16bit, subgroup_arithmetic, matrices_f32, integer_dot,
                 bfloat16_dot, wide_registers, signed_zero_inf_nan_preserve] = vulkan;
    EXPECT_EQ(hal.subgroup_size, subgroup_size);
    EXPECT_EQ(hal.max_workgroup_count, max_workgroup_count);
    EXPECT_EQ(hal.max_workgroup_memory, max_workgroup_memory);
    EXPECT_EQ(hal.int64, int64);
    EXPECT_EQ(hal.float64, float64);
    EXPECT_EQ(hal.storage_8bit, storage_8bit);
    EXPECT_EQ(hal.storage_16bit, storage_16bit);
    EXPECT_EQ(hal.subgroup_arithmetic, subgroup_arithmetic);
    EXPECT_EQ(hal.matrices_f32, matrices_f32);
    EXPECT_EQ(hal.integer_dot, integer_dot);
    EXPECT_EQ(hal.bfloat16_dot, bfloat16_dot);
    EXPECT_EQ(hal.wide_registers, wide_registers);
    EXPECT_EQ(hal.signed_zero_inf_nan_preserve, signed_zero_inf_nan_preserve);
}

TEST_F(BothPlayers, Products) {
    Graph graph;
    graph::Builder builder(graph);
    const Val x = builder.Input("x", {ElementType::kF32, {65, 200}});
    const Val hidden =
        graph::Gelu(graph::Contract(x, builder.Constant(Random({200, 300})), "ik,kj->ij"), false);
    const Val y = graph::Contract(hidden, builder.Constant(Random({300, 70})), "ik,kj->ij");
    graph.AddOutput("y", graph::Softmax(y, 1).id());
    Check(graph, {Random({65, 200})});
}

TEST_F(BothPlayers, ConvolutionNets) {
    Graph graph;
    graph::Builder builder(graph);
    Val x = builder.Input("x", {ElementType::kF32, {1, 3, 33, 29}});
    for (const int64_t channels : {16, 32, 32}) {
        const int64_t from = *x.dim(1).constant();
        const graph::SpatialWindow window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
        x = graph::Relu(graph::Convolve(x, builder.Constant(Random({channels, from, 3, 3})),
                                        builder.Constant(Random({channels})), window, 1,
                                        ElementType::kF32));
    }
    graph.AddOutput("y", x.id());
    graph.AddOutput("pooled", graph::GlobalAveragePool(x).id());
    Check(graph, {Random({1, 3, 33, 29})});
}

TEST_F(BothPlayers, StatesAndTemplates) {
    Graph graph;
    graph::Builder builder(graph);
    const graph::TensorType type = {ElementType::kF32, {2, 700}};
    const Val x = builder.Input("x", type);
    const Val mean = builder.AddOne(graph::op::ReadState{"mean", type}, {});
    const Val next = mean * graph::Like(x, 0.9) + x * graph::Like(x, 0.1);
    builder.Add(graph::op::WriteState{"mean"}, {next});
    const graph::Sorted sorted = graph::Sort(next, 1, true, 700);
    graph.AddOutput("values", sorted.values.id());
    graph.AddOutput("positions", sorted.positions.id());
    graph.AddOutput("sums", graph::Scan(graph::Combine::kSum, next, 1).id());
    Check(graph, {Random({2, 700})}, 3);
}

}  // namespace
}  // namespace fornax::runtime
