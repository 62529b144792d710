// Gradients by images as sums of windows, against the formula.
#include "compiler/graph/build/input_gradient.h"

#include <algorithm>
#include <array>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/convolution_case.h"
#include "compiler/graph/interpret/interpreter.h"

namespace fornax::graph {
namespace {

using Case = ConvolutionCase;

class InputGradient : public ::testing::Test {
  protected:
    void Check(const Case& c) {
        SCOPED_TRACE(fmt::format("{} x {} x {} x {}, {} x {} taps, strides {} and {}", c.batch,
                                 c.channels, c.image[0], c.image[1], c.taps[0], c.taps[1],
                                 c.strides[0], c.strides[1]));
        const std::array<int64_t, 2> size = c.size();
        const Tensor gradient = RandomIntegers(random_, {c.batch, c.outputs, size[0], size[1]});
        const Tensor w = RandomIntegers(random_, {c.outputs, c.channels, c.taps[0], c.taps[1]});
        Graph graph;
        Builder b(graph);
        const Val g = b.Input("g", gradient.type()), weights = b.Input("w", w.type());
        const Shape image{c.batch, c.channels, c.image[0], c.image[1]};
        const std::optional<Val> y = WindowSumInputGradient(g, weights, c.window(), image);
        ASSERT_TRUE(y);
        graph.AddOutput("y", y->id());
        const auto results = Interpret(graph, std::vector{gradient, w});
        ASSERT_TRUE(results.ok()) << results.error().message;
        const Tensor& actual = (*results)[0];
        ASSERT_EQ(actual.dims, (std::vector{c.batch, c.channels, c.image[0], c.image[1]}));
        // Each product of the convolution adds to the place of the image that it reads.
        std::vector<double> expected(static_cast<size_t>(actual.count()), 0);
        for (int64_t i = 0; i < gradient.count() * c.channels * c.taps[0] * c.taps[1]; ++i) {
            const int64_t tap = i % (c.taps[0] * c.taps[1]), rest = i / (c.taps[0] * c.taps[1]);
            const int64_t channel = rest % c.channels, place = rest / c.channels;
            const int64_t column = place % size[1], row = place / size[1] % size[0];
            const int64_t output = place / (size[0] * size[1]) % c.outputs;
            const int64_t n = place / (size[0] * size[1] * c.outputs);
            const int64_t y_at = row * c.strides[0] + tap / c.taps[1] * c.dilations[0] - c.low[0];
            const int64_t x_at =
                column * c.strides[1] + tap % c.taps[1] * c.dilations[1] - c.low[1];
            if (y_at < 0 || x_at < 0 || y_at >= c.image[0] || x_at >= c.image[1]) {
                continue;
            }
            const int64_t of_w = (output * c.channels + channel) * c.taps[0] * c.taps[1] + tap;
            const int64_t at = ((n * c.channels + channel) * c.image[0] + y_at) * c.image[1] + x_at;
            expected[static_cast<size_t>(at)] +=
                gradient.At(place).ToDouble(gradient.element) * w.At(of_w).ToDouble(w.element);
        }
        for (int64_t i = 0; i < actual.count(); ++i) {
            ASSERT_EQ(actual.At(i).ToDouble(actual.element), expected[static_cast<size_t>(i)]) << i;
        }
    }

    std::mt19937 random_{1};
};

TEST_F(InputGradient, WindowsOfEverySize) {
    Check({2, 3, 4, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
    Check({1, 2, 3, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
    Check({2, 2, 3, {5, 7}, {1, 4}, {1, 1}, {1, 1}, {0, 3}, {0, 0}});
    Check({1, 3, 2, {6, 5}, {5, 2}, {1, 1}, {1, 1}, {0, 0}, {4, 1}});
    Check({1, 1, 2, {2, 2}, {3, 3}, {1, 1}, {1, 1}, {4, 5}, {3, 6}});
}

TEST_F(InputGradient, StridesAndDilations) {
    Check({2, 3, 4, {7, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}});
    Check({1, 3, 2, {12, 11}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}});
    Check({2, 2, 2, {9, 10}, {1, 1}, {2, 3}, {1, 1}, {0, 0}, {0, 0}});
    Check({2, 2, 2, {9, 10}, {2, 3}, {3, 1}, {1, 2}, {1, 4}, {0, 2}});
    Check({1, 2, 2, {10, 10}, {3, 2}, {2, 3}, {3, 2}, {0, 1}, {6, 2}});
}

TEST_F(InputGradient, RandomWindows) {
    const auto upto = [&](int64_t most) { return static_cast<int64_t>(random_()) % (most + 1); };
    for (int i = 0; i < 300; ++i) {
        Case c = {1 + upto(2), 1 + upto(2), 1 + upto(2), {}, {}, {}, {}, {}, {}};
        for (size_t axis = 0; axis < 2; ++axis) {
            c.taps[axis] = 1 + upto(3);
            c.strides[axis] = 1 + upto(2);
            c.dilations[axis] = 1 + upto(1);
            const int64_t reach = (c.taps[axis] - 1) * c.dilations[axis];
            c.low[axis] = upto(reach + 2);
            c.high[axis] = upto(reach + 2);
            const int64_t least = std::max<int64_t>(1, reach + 1 - c.low[axis] - c.high[axis]);
            c.image[axis] = least + upto(7);
        }
        Check(c);
    }
}

TEST_F(InputGradient, OthersAreLeft) {
    const Case c = {2, 3, 4, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    const auto is_taken = [&](ElementType element, const Shape& gradient, const Shape& w) {
        Graph graph;
        Builder b(graph);
        const Val g = b.Input("g", {element, gradient}), weights = b.Input("w", {element, w});
        return WindowSumInputGradient(g, weights, c.window(), Shape{gradient[0], 3, 4, 4})
            .has_value();
    };
    const Shape gradient{2, 4, 4, 4}, w{4, 3, 3, 3};
    EXPECT_TRUE(is_taken(ElementType::kF32, gradient, w));
    EXPECT_FALSE(is_taken(ElementType::kF64, gradient, w));
    EXPECT_FALSE(is_taken(ElementType::kF32, Shape{2, 5, 4, 4}, w));
    EXPECT_FALSE(is_taken(ElementType::kF32, gradient, Shape{4, 3, 5, 3}));
    const Expr n(Symbol("n"));
    EXPECT_FALSE(is_taken(ElementType::kF32, Shape{n, 4, 4, 4}, w));
}

}  // namespace
}  // namespace fornax::graph
