// Gradients by weights as products of planes and of copied windows, against the formula.
#include "compiler/graph/build/weight_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/convolution_case.h"
#include "compiler/graph/interpret/interpreter.h"

namespace fornax::graph {
namespace {

using Case = ConvolutionCase;

class WeightGradient : public ::testing::Test {
  protected:
    // Element i of the gradient by the formula.
    static double Expected(const Case& c, const Tensor& gradient, const Tensor& x, int64_t i) {
        const std::array<int64_t, 2> size = c.size();
        const int64_t tx = i % c.taps[1], ty = i / c.taps[1] % c.taps[0];
        const int64_t channel = i / (c.taps[0] * c.taps[1]) % c.channels;
        const int64_t output = i / (c.taps[0] * c.taps[1] * c.channels);
        double expected = 0;
        for (int64_t place = 0; place < c.batch * size[0] * size[1]; ++place) {
            const int64_t column = place % size[1], row = place / size[1] % size[0];
            const int64_t n = place / (size[0] * size[1]);
            const int64_t at_y = row * c.strides[0] + ty * c.dilations[0] - c.low[0];
            const int64_t at_x = column * c.strides[1] + tx * c.dilations[1] - c.low[1];
            if (at_y < 0 || at_x < 0 || at_y >= c.image[0] || at_x >= c.image[1]) {
                continue;
            }
            const int64_t of_x =
                ((n * c.channels + channel) * c.image[0] + at_y) * c.image[1] + at_x;
            const int64_t of_gradient =
                ((n * c.outputs + output) * size[0] + row) * size[1] + column;
            expected += x.At(of_x).ToDouble(x.element) *
                        gradient.At(of_gradient).ToDouble(gradient.element);
        }
        return expected;
    }

    using Form = std::optional<Val> (*)(Val, Val, const SpatialWindow&);

    // Sets `actual` to what a form computes.
    static void Run(const Case& c,
                    Form form,
                    const Tensor& gradient,
                    const Tensor& x,
                    Tensor& actual) {
        Graph graph;
        Builder b(graph);
        const Val g = b.Input("g", gradient.type()), image = b.Input("x", x.type());
        const std::optional<Val> y = form(g, image, c.window());
        ASSERT_TRUE(y);
        graph.AddOutput("y", y->id());
        const auto results = Interpret(graph, std::vector{gradient, x});
        ASSERT_TRUE(results.ok()) << results.error().message;
        actual = (*results)[0];
        ASSERT_EQ(actual.dims, (std::vector{c.outputs, c.channels, c.taps[0], c.taps[1]}));
    }

    void Check(const Case& c) {
        SCOPED_TRACE(fmt::format("{} x {} x {} x {}, {} x {} taps, strides {} and {}", c.batch,
                                 c.channels, c.image[0], c.image[1], c.taps[0], c.taps[1],
                                 c.strides[0], c.strides[1]));
        const std::array<int64_t, 2> size = c.size();
        const Tensor gradient = RandomIntegers(random_, {c.batch, c.outputs, size[0], size[1]});
        const Tensor x = RandomIntegers(random_, {c.batch, c.channels, c.image[0], c.image[1]});
        for (const Form form : {&PlanarWeightGradient, &WindowCopyWeightGradient}) {
            Tensor actual;
            ASSERT_NO_FATAL_FAILURE(Run(c, form, gradient, x, actual));
            for (int64_t i = 0; i < actual.count(); ++i) {
                ASSERT_EQ(actual.At(i).ToDouble(actual.element), Expected(c, gradient, x, i)) << i;
            }
        }
    }

    std::mt19937 random_{1};
};

TEST_F(WeightGradient, WindowsOfEverySize) {
    Check({2, 3, 4, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
    Check({1, 2, 3, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}});
    Check({2, 2, 3, {5, 7}, {1, 4}, {1, 1}, {1, 1}, {0, 3}, {0, 0}});
    Check({1, 3, 2, {6, 5}, {5, 2}, {1, 1}, {1, 1}, {0, 0}, {4, 1}});
    Check({2, 1, 1, {4, 3}, {3, 3}, {1, 1}, {1, 1}, {2, 2}, {2, 2}});
}

TEST_F(WeightGradient, StridesAndDilations) {
    Check({2, 3, 4, {7, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}});
    Check({1, 3, 2, {12, 11}, {7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}});
    Check({2, 2, 2, {9, 10}, {1, 1}, {2, 3}, {1, 1}, {0, 0}, {0, 0}});
    Check({2, 2, 2, {9, 10}, {2, 3}, {3, 1}, {1, 2}, {1, 4}, {0, 2}});
    Check({1, 2, 2, {10, 10}, {3, 2}, {2, 3}, {3, 2}, {0, 1}, {6, 2}});
}

// Transforms multiply by halves, so small integers are exact here, too.
TEST_F(WeightGradient, Winograd) {
    const auto form = [](Val gradient, Val x, const SpatialWindow& window) {
        return WeightGradientOf(WeightGradientForm::kWinograd, gradient, x, window);
    };
    for (const Case& c : {Case{2, 3, 4, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                          Case{1, 2, 3, {7, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                          Case{3, 2, 1, {1, 2}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                          Case{1, 1, 2, {6, 3}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
                          Case{2, 2, 2, {5, 4}, {3, 3}, {1, 1}, {1, 1}, {2, 1}, {0, 2}}}) {
        const std::array<int64_t, 2> size = c.size();
        const Tensor gradient = RandomIntegers(random_, {c.batch, c.outputs, size[0], size[1]});
        const Tensor x = RandomIntegers(random_, {c.batch, c.channels, c.image[0], c.image[1]});
        Tensor actual;
        ASSERT_NO_FATAL_FAILURE(Run(c, form, gradient, x, actual));
        for (int64_t i = 0; i < actual.count(); ++i) {
            ASSERT_EQ(actual.At(i).ToDouble(actual.element), Expected(c, gradient, x, i)) << i;
        }
    }
}

TEST_F(WeightGradient, RandomWindows) {
    const auto upto = [&](int64_t most) { return static_cast<int64_t>(random_()) % (most + 1); };
    for (int i = 0; i < 300; ++i) {
        Case c = {1 + upto(2), 1 + upto(2), 1 + upto(2), {}, {}, {}, {}, {}, {}};
        for (size_t axis = 0; axis < 2; ++axis) {
            c.taps[axis] = 1 + upto(3);
            c.strides[axis] = 1 + upto(2);
            c.dilations[axis] = 1 + upto(1);
            const int64_t reach = (c.taps[axis] - 1) * c.dilations[axis];
            c.low[axis] = upto(reach);
            c.high[axis] = upto(reach);
            const int64_t least = std::max<int64_t>(1, reach + 1 - c.low[axis] - c.high[axis]);
            c.image[axis] = least + upto(7);
        }
        Check(c);
    }
}

// Planes multiply an infinity by zeros between rows: what it reaches is not finite, the rest is as
// it would be without. Copies of windows have the convolution's own products alone.
TEST_F(WeightGradient, InfinitiesInImages) {
    const Case c = {2, 3, 4, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    const Tensor gradient = Tensor::FromFloats({2, 4, 5, 6}, std::vector<float>(240, 2));
    for (const int64_t place : {0, 14, 29}) {
        std::vector<float> values(180, 3);
        values[static_cast<size_t>(30 + place)] = std::numeric_limits<float>::infinity();
        const Tensor x = Tensor::FromFloats({2, 3, 5, 6}, values);
        Tensor planes, copies;
        ASSERT_NO_FATAL_FAILURE(Run(c, &PlanarWeightGradient, gradient, x, planes));
        ASSERT_NO_FATAL_FAILURE(Run(c, &WindowCopyWeightGradient, gradient, x, copies));
        for (int64_t i = 0; i < copies.count(); ++i) {
            const double expected = Expected(c, gradient, x, i);
            EXPECT_EQ(copies.At(i).ToDouble(copies.element), expected) << i;
            const double actual = planes.At(i).ToDouble(planes.element);
            if (std::isfinite(actual)) {
                EXPECT_EQ(actual, expected) << i;
            } else {
                EXPECT_EQ(i / 9 % 3, 1) << i;
            }
        }
    }
}

TEST_F(WeightGradient, OthersAreLeft) {
    const Case c = {2, 3, 4, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    const auto is_planar = [&](ElementType element, const Shape& gradient, const Shape& x,
                               const SpatialWindow& window) {
        Graph graph;
        Builder b(graph);
        const Val g = b.Input("g", {element, gradient}), image = b.Input("x", {element, x});
        const bool is_planar = PlanarWeightGradient(g, image, window).has_value();
        EXPECT_EQ(WindowCopyWeightGradient(g, image, window).has_value(), is_planar);
        return is_planar;
    };
    const Shape gradient{2, 4, 4, 4}, x{2, 3, 4, 4};
    EXPECT_TRUE(is_planar(ElementType::kF32, gradient, x, c.window()));
    EXPECT_FALSE(is_planar(ElementType::kF64, gradient, x, c.window()));
    EXPECT_FALSE(is_planar(ElementType::kF32, Shape{2, 4, 5, 4}, x, c.window()));
    const Expr n(Symbol("n"));
    EXPECT_FALSE(is_planar(ElementType::kF32, Shape{n, 4, 4, 4}, Shape{n, 3, 4, 4}, c.window()));
    Case wide = c;  // windows that lie in the padding alone
    wide.low = wide.high = {3, 3};
    EXPECT_FALSE(is_planar(ElementType::kF32, Shape{2, 4, 8, 8}, x, wide.window()));
}

}  // namespace
}  // namespace fornax::graph
