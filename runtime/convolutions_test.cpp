// Convolutions with constant weights on a device: channels last, windows computed for tiles, packed
// weights, and what keeps the layout behind them, against the interpreter.
#include <array>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/convolve.h"
#include "compiler/graph/build/winograd.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/random_tensor.h"
#include "runtime/player_fixture.h"

namespace fornax::runtime {
namespace {

using graph::Expr;
using graph::Graph;
using graph::Tensor;
using graph::Val;
using graph::Vals;

class Convolutions : public PlayerTest {
  protected:
    struct Layer {
        int64_t channels, kernel = 3, stride = 1, dilation = 1, groups = 1, low = 1, high = 1;
    };

    Val Input(const std::vector<int64_t>& dims) {
        inputs_.push_back(Random(dims, 4));
        return builder_.Input("x", inputs_.back().type());
    }
    // Weights that each run has others of.
    Val Weights(const std::vector<int64_t>& dims) {
        inputs_.push_back(Random(dims, 2));
        return builder_.Input(fmt::format("w{}", inputs_.size()), inputs_.back().type());
    }
    Val Constant(const std::vector<int64_t>& dims) { return builder_.Constant(Random(dims, 2)); }
    Val Convolve(Val x, const Layer& layer) {
        const int64_t in = *x.dim(1).constant();
        const Val weights = builder_.Constant(
            Random({layer.channels, in / layer.groups, layer.kernel, layer.kernel}, 2));
        const Val bias = builder_.Constant(Random({layer.channels}, 4));
        const graph::SpatialWindow window = {{layer.kernel, layer.kernel},
                                             {layer.stride, layer.stride},
                                             {layer.dilation, layer.dilation},
                                             {layer.low, layer.low},
                                             {layer.high, layer.high}};
        return graph::Convolve(x, weights, bias, window, layer.groups, graph::ElementType::kF32);
    }
    // The outputs on the device are the interpreter's to the last bit, since all numbers are small
    // and whole.
    void Check(const Vals& outputs) {
        for (const Val output : outputs) {
            graph_.AddOutput("y", output.id());
        }
        const Result<std::vector<Tensor>> expected = graph::Interpret(graph_, inputs_);
        ASSERT_TRUE(expected.ok()) << expected.error().message;
        Result<graph::Plan> plan = graph::Compile(graph_, {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        products_ = 0;
        transforms_ = 0;
        for (const graph::PlanKernel& kernel : plan->kernels) {
            products_ += kernel.loop.mapping == graph::loop::Mapping::kProduct ? 1 : 0;
            transforms_ += kernel.loop.name == "concat" ? 1 : 0;
        }
        steps_ = plan->steps.size();
        Session session(Make(std::move(*plan)));
        const std::vector<Tensor> actual = Run(session, inputs_);
        ASSERT_EQ(actual.size(), outputs.size());
        for (size_t i = 0; i < actual.size(); ++i) {
            EXPECT_EQ(graph::testing::Difference(actual[i], (*expected)[i], 0), "") << i;
        }
    }
    void Clear() {
        graph_ = Graph();
        inputs_.clear();
    }

    Graph graph_;
    graph::Builder builder_{graph_};
    std::vector<Tensor> inputs_;
    size_t products_ = 0, transforms_ = 0, steps_ = 0;

  private:
    Tensor Random(const std::vector<int64_t>& dims, int64_t most) {
        return graph::testing::MakeRandomTensor(random_, graph::ElementType::kF32, dims, -most,
                                                most);
    }

    std::mt19937_64 random_{5};
};

// Runs of channels of all lengths, tiles that end behind the last place or channel, windows outside
// of the image.
TEST_F(Convolutions, OfAnyChannelsAndWindows) {
    const std::vector<Layer> layers = {
        {.channels = 64},
        {.channels = 200},
        {.channels = 80, .stride = 2},
        {.channels = 16, .dilation = 2, .low = 2, .high = 0},
        {.channels = 24, .kernel = 1, .low = 0, .high = 0},
        {.channels = 33, .kernel = 1, .stride = 2, .low = 0, .high = 0},
        {.channels = 80},
        {.channels = 64, .kernel = 5, .groups = 2, .low = 3, .high = 1},
        {.channels = 256, .kernel = 2, .low = 0, .high = 0},
    };
    for (const int64_t channels : {16, 20, 32, 48, 64, 130}) {
        for (size_t i = 0; i < layers.size(); ++i) {
            SCOPED_TRACE(fmt::format("{} channels, layer {}", channels, i));
            Clear();
            const Val x = Input({2, channels, 7, 9});
            // One product gives its values in the order of its dimensions, one with channels last.
            const Val y = graph::Relu(Convolve(x, layers[i]));
            const Val last = graph::Permute(graph::Relu(Convolve(x, layers[i])), {0, 2, 3, 1});
            Check({y, last});
            if (layers[i].groups == 1) {
                EXPECT_EQ(steps_, transforms_ == 0 ? 2U : 4U + transforms_);
            }
        }
    }
}

// Large enough for fewer multiplications: transforms of the image, a product, and the
// results. Odd sizes, all paddings, channels that fill no matrix, sums behind it.
TEST_F(Convolutions, WithFewerMultiplications) {
    struct Case {
        int64_t channels, height, width;
        Layer layer;
    };
    const std::vector<Case> cases = {
        {32, 30, 33, {.channels = 32}},
        {36, 23, 25, {.channels = 50, .low = 0, .high = 0}},
        {64, 17, 17, {.channels = 40, .low = 2, .high = 1}},
        {16, 43, 40, {.channels = 80, .low = 0, .high = 3}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(fmt::format("{} channels, {} x {}", c.channels, c.height, c.width));
        Clear();
        const Val x = Input({2, c.channels, c.height, c.width});
        const Val y = Convolve(x, c.layer);
        Check({graph::Relu(y), graph::Permute(graph::Relu(y + y), {0, 2, 3, 1})});
        EXPECT_EQ(products_, 1U);
        EXPECT_EQ(transforms_, 1U);  // one kernel has all positions of the image
    }
    // Two in a row, and a stride that has no such form.
    Clear();
    const Val x = Input({1, 32, 42, 42});
    const Val y = graph::Relu(Convolve(x, {.channels = 32}));
    Check(
        {Convolve(graph::Relu(Convolve(y, {.channels = 32})) + y, {.channels = 64, .stride = 2})});
    EXPECT_EQ(products_, 2U);  // kernels: the first two have the same
}

// The same with weights that a kernel transforms, and with those of a transposed convolution.
TEST_F(Convolutions, WithFewerMultiplicationsByWeightsOfARun) {
    struct Case {
        int64_t channels, outputs, height, width, low, high, extra = 0;
    };
    const std::vector<Case> cases = {
        {32, 32, 30, 33, 1, 1}, {36, 50, 23, 25, 0, 0}, {64, 40, 19, 17, 2, 1, 1}};
    const std::vector<int64_t> ones = {1, 1};
    for (const Case& c : cases) {
        for (const bool transposed : {false, true}) {
            SCOPED_TRACE(fmt::format("{} channels, {} x {}, transposed: {}", c.channels, c.height,
                                     c.width, transposed));
            Clear();
            const graph::SpatialWindow window = {
                {3, 3}, ones, ones, {c.low, c.low}, {c.high, c.high}};
            const Val x = Input({2, c.channels, c.height, c.width});
            const Val y = transposed ? graph::ConvolveTransposed(
                                           x, Weights({c.channels, c.outputs, 3, 3}), Val(), window,
                                           std::vector<Expr>{0, c.extra}, 1)
                                     : graph::Convolve(x, Weights({c.outputs, c.channels, 3, 3}),
                                                       Val(), window, 1, graph::ElementType::kF32);
            Check({graph::Relu(y)});
            EXPECT_EQ(products_, 1U);
            EXPECT_EQ(transforms_, 2U);
        }
    }
}

// Other weights of a run are copied into the order of constant ones, and results have channels
// last: strides, dilations, odd sizes, channels that fill no matrix, few of them in the image.
TEST_F(Convolutions, WithChannelsLastByWeightsOfARun) {
    struct Case {
        int64_t channels, height, width;
        Layer layer;
        int64_t window_width = 3;
    };
    const std::vector<Case> cases = {
        {3, 49, 45, {.channels = 32, .kernel = 7, .stride = 2, .low = 3, .high = 3}, 7},
        {33, 33, 35, {.channels = 50, .stride = 2}},
        {32, 35, 40, {.channels = 24, .dilation = 2, .low = 2, .high = 3}, 2},
        {40, 33, 40, {.channels = 16, .kernel = 1, .low = 0, .high = 0}, 1},
        {48, 50, 49, {.channels = 64, .kernel = 1, .stride = 2, .low = 0, .high = 1}, 1},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(fmt::format("{} channels, {} x {}", c.channels, c.height, c.width));
        Clear();
        const Layer& layer = c.layer;
        const graph::SpatialWindow window = {{layer.kernel, c.window_width},
                                             {layer.stride, layer.stride},
                                             {layer.dilation, layer.dilation},
                                             {layer.low, layer.low},
                                             {layer.high, layer.high}};
        const Val x = Input({2, c.channels, c.height, c.width});
        const Val w = Weights({layer.channels, c.channels, layer.kernel, c.window_width});
        const Val y = graph::Convolve(x, w, Val(), window, 1, graph::ElementType::kF32);
        Check({graph::Permute(graph::Relu(y), {0, 2, 3, 1})});
        EXPECT_EQ(products_, 1U);
        EXPECT_LE(steps_, 3U);
    }
}

// Gradients by weights copy images into the order of channels last, unless they lie so already.
TEST_F(Convolutions, GradientsByWeightsReadWhatHasChannelsLast) {
    for (const auto& size : std::vector<std::array<int64_t, 2>>{{8, 12}, {9, 7}}) {
        std::array<size_t, 2> steps = {};
        for (const bool last : {false, true}) {
            Clear();
            const auto image = [&](int64_t channels) {
                return last ? graph::Permute(Input({2, size[0], size[1], channels}), {0, 3, 1, 2})
                            : Input({2, channels, size[0], size[1]});
            };
            const Val gradient = image(20), x = image(33);
            const graph::SpatialWindow window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
            Check({graph::WinogradWeightGradient(gradient, x, window)});
            EXPECT_EQ(products_, 1U);
            steps[last ? 1 : 0] = steps_;
        }
        EXPECT_EQ(steps[1], 4U);  // two transforms, the product, the weights
        EXPECT_GE(steps[0], steps[1] + 2);
    }
}

// Nothing between convolutions has a kernel of its own: the layout goes through to the end.
TEST_F(Convolutions, AreOneKernelEach) {
    Val x = Input({1, 3, 33, 31});
    x = graph::Relu(Convolve(x, {.channels = 32, .kernel = 7, .stride = 2, .low = 3, .high = 3}));
    Val y = graph::Relu(Convolve(x, {.channels = 64, .stride = 2}));
    y = Convolve(y, {.channels = 48, .kernel = 1, .low = 0, .high = 0});
    const Val shortcut =
        Convolve(x, {.channels = 48, .kernel = 1, .stride = 2, .low = 0, .high = 0});
    Check({graph::Relu(y + shortcut)});
    EXPECT_EQ(products_, 4U);
    EXPECT_EQ(steps_, 4U);
}

// Whatever follows a convolution sees its values in the order of their dimensions.
TEST_F(Convolutions, GiveTheirValuesToAll) {
    const Val x = Input({2, 16, 8, 6});
    const Val y = Convolve(x, {.channels = 32});
    const graph::SpatialWindow pool = {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
    const Val pooled = graph::MaxPool(y, pool, std::vector<Expr>{0, 0}, false, false).values;
    const Val joined = graph::Concat({y, x, graph::Relu(y)}, 1);
    const Val half = graph::SliceAxis(joined, 1, 8, 30, 2);
    const Val flat = graph::Reshape(y, graph::Shape{2, 32, 48});
    const Val groups = graph::Reshape(y, graph::Shape{2, 4, 8, 8, 6});
    Check({pooled, joined, half, graph::Permute(flat, {0, 2, 1}),
           graph::Permute(groups, {0, 2, 1, 3, 4}), graph::Reshape(pooled, graph::Shape{2, 384}),
           graph::Reduce(graph::Combine::kMax, y, {1}, false),
           graph::Reduce(graph::Combine::kSum, y, {2, 3}, false), graph::Unsqueeze(y, 1),
           Convolve(joined, {.channels = 16, .groups = 4}),
           Convolve(y, {.channels = 32, .groups = 32}),
           graph::Pad(y, 1, {0, 1, 0, 2}, {0, 0, 1, 0}), graph::Reverse(y, 2),
           y + builder_.Constant(Tensor::FromFloats({6}, std::vector<float>{1, 2, 3, 4, 5, 6}))});
}

// Windows side by side are a product, whose places go through to the next convolution; others are a
// convolution of the input with zeros between.
TEST_F(Convolutions, Transposed) {
    for (const int64_t size : {2, 3}) {
        SCOPED_TRACE(size);
        Clear();
        const Val x = Convolve(Input({2, 16, 5, 7}), {.channels = 32});
        const Val weights = Constant({32, 16, size, 2});
        const graph::SpatialWindow window = {{size, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
        const std::vector<Expr> none = {0, 0};
        const Val y = graph::ConvolveTransposed(x, weights, Constant({16}), window, none, 1);
        Check({Convolve(y, {.channels = 16}), y});
        EXPECT_EQ(products_, 3U);
    }
}

// Where there is enough to compute, zeros between the input's places are not multiplied: each place
// of a stride is a convolution of its own, which takes some of the window.
TEST_F(Convolutions, TransposedByPlaces) {
    struct Case {
        std::vector<int64_t> size, strides, low, high, extra;
        size_t parts;
    };
    const std::vector<Case> cases = {
        {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 0}, 4}, {{4, 4}, {2, 2}, {1, 2}, {1, 0}, {0, 0}, 4},
        {{1, 1}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 1}, {{5, 4}, {2, 3}, {3, 0}, {4, 1}, {0, 2}, 6},
        {{3, 3}, {1, 2}, {4, 0}, {1, 0}, {0, 1}, 2},
    };
    for (size_t i = 0; i < cases.size(); ++i) {
        for (const bool constant : {false, true}) {
            SCOPED_TRACE(fmt::format("case {}, constant weights: {}", i, constant));
            Clear();
            const Case& c = cases[i];
            const std::vector<int64_t> weights = {64, 40, c.size[0], c.size[1]};
            const Val x = Input({2, 64, 21, 20});
            const auto sizes = [](const std::vector<int64_t>& values) {
                return std::vector<Expr>(values.begin(), values.end());
            };
            const graph::SpatialWindow window = {
                sizes(c.size), c.strides, {1, 1}, sizes(c.low), sizes(c.high)};
            Check({graph::Relu(
                graph::ConvolveTransposed(x, constant ? Constant(weights) : Weights(weights),
                                          Constant({40}), window, sizes(c.extra), 1))});
            EXPECT_GT(steps_, c.parts);  // each place, and their join
        }
    }
}

}  // namespace
}  // namespace fornax::runtime
