// Attention on a device against the interpreter: sizes around those of tiles, groups of heads,
// masks, causal ones, histories; as the operators of networks expand to it and as exporters write
// it.
#include <limits>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/attention.h"
#include "compiler/graph/build/normalise.h"
#include "compiler/graph/build/product.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/random_tensor.h"
#include "runtime/player_fixture.h"

namespace fornax::runtime {
namespace {

using graph::Builder;
using graph::ElementType;
using graph::Graph;
using graph::Tensor;
using graph::Val;

class Attentions : public PlayerTest {
  protected:
    Tensor Random(const std::vector<int64_t>& dims) {
        return graph::testing::MakeRandomTensor(random_, ElementType::kF32, dims, -2, 2);
    }
    Val Input(Builder& builder, Tensor tensor) {
        inputs_.push_back(std::move(tensor));
        return builder.Input(fmt::format("in{}", inputs_.size()), inputs_.back().type());
    }
    Val Input(Builder& builder, const std::vector<int64_t>& dims) {
        return Input(builder, Random(dims));
    }
    // Rows of a mask with which each query sees some keys, and the last one none.
    Tensor Mask(int64_t queries, int64_t keys, float never) {
        std::vector<float> values;
        for (int64_t i = 0; i < queries * keys; ++i) {
            const bool seen = i / keys + 1 < queries && random_() % 3 != 0;
            values.push_back(seen ? static_cast<float>(random_() % 3) : never);
        }
        return Tensor::FromFloats({1, 1, queries, keys}, values);
    }
    size_t CountKernels(const graph::Plan& plan, graph::loop::Mapping mapping) {
        size_t count = 0;
        for (const graph::PlanStep& step : plan.steps) {
            const auto* dispatch = std::get_if<graph::DispatchStep>(&step);
            if (dispatch != nullptr) {
                count += plan.kernels[dispatch->kernel.value()].loop.mapping == mapping ? 1U : 0U;
            }
        }
        return count;
    }
    // The graph's output is the interpreter's, and one kernel is an attention.
    void Check(Graph graph, Val output) {
        graph.AddOutput("y", output.id());
        const Result<std::vector<Tensor>> expected = graph::Interpret(graph, inputs_);
        ASSERT_TRUE(expected.ok()) << expected.error().message;
        Result<graph::Plan> plan = graph::Compile(std::move(graph), {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        EXPECT_EQ(CountKernels(*plan, graph::loop::Mapping::kAttention), 1U);
        Session session(Make(std::move(*plan)));
        const std::vector<Tensor> actual = Run(session, inputs_);
        ASSERT_EQ(actual.size(), 1U);
        EXPECT_EQ(graph::testing::Difference(actual[0], (*expected)[0], 1e-5), "");
        inputs_.clear();
    }

    std::mt19937_64 random_{5};
    std::vector<Tensor> inputs_;
};

TEST_F(Attentions, OfOperators) {
    struct Case {
        int64_t heads, key_heads, queries, keys, size, value_size;
    };
    constexpr Case kCases[] = {{1, 1, 1, 2, 4, 4},     {4, 4, 17, 65, 16, 16},
                               {4, 2, 5, 33, 64, 32},  {6, 1, 1, 130, 32, 8},
                               {2, 2, 33, 16, 20, 48}, {8, 2, 40, 100, 80, 80},
                               {4, 2, 3, 70, 32, 48}};
    for (const Case& c : kCases) {
        for (const int kind : {0, 1, 2, 3}) {
            SCOPED_TRACE(fmt::format("{} of {} heads, {} x {}, kind {}", c.heads, c.key_heads,
                                     c.queries, c.keys, kind));
            Graph graph;
            Builder builder(graph);
            graph::AttentionOperands operands;
            operands.query = Input(builder, {2, c.heads, c.queries, c.size});
            operands.key = Input(builder, {2, c.key_heads, c.keys, c.size});
            operands.value = Input(builder, {2, c.key_heads, c.keys, c.value_size});
            graph::AttentionOptions options;
            options.scale = 0.25;
            options.causal = kind == 1;
            options.softcap = kind == 2 ? 3 : 0;
            if (kind >= 2) {
                operands.mask = Input(
                    builder, Mask(c.queries, c.keys,
                                  kind == 2 ? -std::numeric_limits<float>::infinity() : -1e4F));
            }
            const Val y = graph::Attention(operands, options, graph::Scores::kNone).y;
            Check(std::move(graph), y);
        }
    }
}

// Heads are parts of rows, queries and keys are scaled each, the result's heads lie side by side.
// A query that sees no key is NaN here.
TEST_F(Attentions, AsExportersWriteIt) {
    for (const auto& [queries, keys] : {std::pair(1, 7), {20, 20}, {50, 197}}) {
        for (const bool masked : {false, true}) {
            SCOPED_TRACE(fmt::format("{} x {} {}", queries, keys, masked));
            Graph graph;
            Builder builder(graph);
            const auto heads = [&](int64_t rows) {
                const Val x = Input(builder, {2, rows, 3 * 32});
                return Permute(Reshape(x, {2, rows, 3, 32}), {0, 2, 1, 3});
            };
            const Val q = heads(queries) * 0.5, k = heads(keys) * 0.5, v = heads(keys);
            Val scores = MatMul(q, Permute(k, {0, 1, 3, 2}));
            if (masked) {
                scores = scores + Input(builder, Mask(queries, keys,
                                                      -std::numeric_limits<float>::infinity()));
            }
            const Val y = Permute(MatMul(Softmax(scores, -1), v), {0, 2, 1, 3});
            const Val joined = Reshape(y, {2, queries, 3 * 32});
            Check(std::move(graph), joined);
        }
    }
}

// A layer of an encoder, as deep in a network as costs could add up to: query, key and value in one
// product, attention, three more products, two normalisations.
TEST_F(Attentions, OfALayerInSevenKernels) {
    constexpr int64_t kRows = 20, kWidth = 48;
    Graph graph;
    Builder builder(graph);
    Val x = Input(builder, {1, kRows, kWidth});
    const auto dense = [&](Val value, int64_t from, int64_t to) {
        const Val product = MatMul(value, builder.Constant(Random({from, to})) * 0.1);
        return product + builder.Constant(Random({to}));
    };
    const auto norm = [&](Val value) {
        return LayerNorm(value, builder.Constant(Random({kWidth})),
                         builder.Constant(Random({kWidth})), -1, 1e-5, ElementType::kF32)
            .y;
    };
    constexpr int kLayers = 3;
    for (int layer = 0; layer < kLayers; ++layer) {
        const auto heads = [&](Val value) {
            return Permute(Reshape(value, {1, kRows, 3, 16}), {0, 2, 1, 3});
        };
        const Val q = heads(dense(x, kWidth, kWidth)), k = heads(dense(x, kWidth, kWidth)),
                  v = heads(dense(x, kWidth, kWidth));
        const Val scores = MatMul(q, Permute(k, {0, 1, 3, 2})) * 0.25;
        const Val y = Permute(MatMul(Softmax(scores, -1), v), {0, 2, 1, 3});
        x = norm(x + dense(Reshape(y, {1, kRows, kWidth}), kWidth, kWidth));
        x = norm(x + dense(graph::map::Tanh(dense(x, kWidth, 2 * kWidth)), 2 * kWidth, kWidth));
    }
    graph.AddOutput("y", x.id());
    const Result<std::vector<Tensor>> expected = graph::Interpret(graph, inputs_);
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    Result<graph::Plan> plan = graph::Compile(std::move(graph), {});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(plan->steps.size(), 7U * kLayers);
    EXPECT_EQ(CountKernels(*plan, graph::loop::Mapping::kAttention), size_t{kLayers});
    EXPECT_EQ(CountKernels(*plan, graph::loop::Mapping::kProduct), 4U * kLayers);
    Session session(Make(std::move(*plan)));
    const std::vector<Tensor> actual = Run(session, inputs_);
    EXPECT_EQ(graph::testing::Difference(actual[0], (*expected)[0], 1e-4), "");
}

}  // namespace
}  // namespace fornax::runtime
