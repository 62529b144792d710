// Fourier transforms on a device and in the interpreter of plans, against sums in f64.
#include <cmath>
#include <complex>
#include <numbers>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/signal.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/plan/plan_file.h"
#include "compiler/graph/testing/interpret_plan.h"
#include "compiler/graph/testing/random_tensor.h"
#include "runtime/player_fixture.h"

namespace fornax::runtime {
namespace {

using graph::ElementType;
using graph::Expr;
using graph::Graph;
using graph::Tensor;
using graph::Transform;
using Complex = std::complex<double>;

// What a transform of one row gives.
std::vector<double> Expected(const std::vector<Complex>& given,
                             int64_t length,
                             Transform transform) {
    const bool inverse = transform == Transform::kInverse || transform == Transform::kInverseHalf;
    std::vector<Complex> roots;
    for (int64_t i = 0; i < length; ++i) {
        roots.push_back(std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi *
                                            static_cast<double>(i) / static_cast<double>(length)));
    }
    const auto count = static_cast<int64_t>(given.size());
    std::vector<double> result;
    const int64_t made = transform == Transform::kForwardHalf ? length / 2 + 1 : length;
    for (int64_t k = 0; k < made; ++k) {
        Complex sum = 0;
        for (int64_t i = 0; i < length; ++i) {
            const bool mirrored = transform == Transform::kInverseHalf && i >= count;
            const Complex number = mirrored ? std::conj(given[static_cast<size_t>(length - i)])
                                            : given[static_cast<size_t>(i)];
            sum += number * roots[static_cast<size_t>(i * k % length)];
        }
        sum /= inverse ? static_cast<double>(length) : 1.0;
        result.push_back(sum.real());
        if (transform != Transform::kInverseHalf) {
            result.push_back(sum.imag());
        }
    }
    return result;
}

class Transforms : public PlayerTest {
  protected:
    // `templates`: how many dispatches of the template there are to be.
    void Check(int64_t length, int64_t parts, Transform transform, size_t templates) {
        SCOPED_TRACE(fmt::format("{} numbers of {} parts, transform {}", length, parts,
                                 static_cast<int>(transform)));
        constexpr int64_t kRows = 3;
        const int64_t taken = transform == Transform::kInverseHalf ? length / 2 + 1 : length;
        Graph graph;
        graph::Builder builder(graph);
        const graph::Val x =
            builder.Input("x", {ElementType::kF32, graph::Shape{kRows, taken, parts}});
        graph.AddOutput("y", graph::FourierTransform(x, 1, length, transform).id());
        Result<graph::Plan> plan = graph::Compile(graph, {});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        EXPECT_EQ(TemplatesOf(*plan), templates);
        const Tensor input = graph::testing::MakeRandomTensor(random_, ElementType::kF32,
                                                              {kRows, taken, parts}, -1000, 1000);
        std::vector<double> expected;
        for (int64_t row = 0; row < kRows; ++row) {
            std::vector<Complex> given;
            for (int64_t i = 0; i < taken; ++i) {
                const int64_t at = (row * taken + i) * parts;
                given.emplace_back(input.At(at).number, parts == 2 ? input.At(at + 1).number : 0.0);
            }
            const std::vector<double> of_row = Expected(given, length, transform);
            expected.insert(expected.end(), of_row.begin(), of_row.end());
        }
        // The plan passes the rules of plans from files.
        const Result<std::vector<std::byte>> file = graph::SerializePlan(*plan);
        ASSERT_TRUE(file.ok()) << file.error().message;
        Result<graph::Plan> read = graph::ParsePlan(*file);
        ASSERT_TRUE(read.ok()) << read.error().message;
        const Result<std::vector<Tensor>> on_host =
            graph::testing::InterpretPlan(*read, {&input, 1}, {});
        ASSERT_TRUE(on_host.ok()) << on_host.error().message;
        Session session(Make(*std::move(read)));
        CheckNear((*on_host)[0], expected);
        CheckNear(Run(session, {input})[0], expected);
    }

    static size_t TemplatesOf(const graph::Plan& plan) {
        size_t count = 0;
        for (const graph::PlanStep& step : plan.steps) {
            const auto& kernel = plan.kernels[std::get<graph::DispatchStep>(step).kernel.value()];
            count += kernel.of_template ? 1 : 0;
        }
        return count;
    }

    static void CheckNear(const Tensor& actual, const std::vector<double>& expected) {
        ASSERT_EQ(static_cast<size_t>(actual.count()), expected.size());
        double error = 0, all = 0;
        for (size_t i = 0; i < expected.size(); ++i) {
            const double number = actual.At(static_cast<int64_t>(i)).number;
            error += (number - expected[i]) * (number - expected[i]);
            all += expected[i] * expected[i];
        }
        EXPECT_LE(std::sqrt(error), 5e-7 * std::sqrt(all));
    }

    std::mt19937_64 random_{7};
};

// Every radix in every pass, even and odd lengths, all kinds.
TEST_F(Transforms, OneRow) {
    for (const int64_t length : {256, 243, 343, 630, 1250, 2048}) {
        Check(length, 1, Transform::kForward, 1);
        Check(length, 1, Transform::kForwardHalf, 1);
        Check(length, 1, Transform::kInverse, 1);
        Check(length, 2, Transform::kForward, 1);
        Check(length, 2, Transform::kForwardHalf, 1);
        Check(length, 2, Transform::kInverse, 1);
        Check(length, 2, Transform::kInverseHalf, 1);
    }
    Check(4096, 1, Transform::kForwardHalf, 1);
    Check(4096, 2, Transform::kInverseHalf, 1);
}

TEST_F(Transforms, TwoSteps) {
    Check(4096, 2, Transform::kForward, 2);
    Check(2187, 1, Transform::kForwardHalf, 2);
    Check(2500, 2, Transform::kInverse, 2);
    Check(5000, 1, Transform::kForward, 2);
    Check(4374, 2, Transform::kInverseHalf, 2);
    Check(8192, 2, Transform::kInverseHalf, 2);
}

// Prime factors that the template has no radix for.
TEST_F(Transforms, ByConvolution) {
    Check(1021, 1, Transform::kForwardHalf, 2);
    Check(1021, 2, Transform::kInverse, 2);
    Check(1034, 2, Transform::kInverseHalf, 4);
}

TEST_F(Transforms, ShortOnesAreProducts) {
    Check(2, 2, Transform::kForward, 0);
    Check(30, 1, Transform::kForwardHalf, 0);
    Check(61, 2, Transform::kInverse, 0);
    Check(32, 2, Transform::kForward, 1);
}

// Rows of any number by one plan; a length that is not known stays a product.
TEST_F(Transforms, SymbolicSizes) {
    Graph graph;
    graph::Builder builder(graph);
    const graph::Symbol n = graph.sizes().Declare("n", 4);
    const graph::Val x = builder.Input("x", {ElementType::kF32, graph::Shape{Expr(n), 512, 1}});
    graph.AddOutput("y", graph::FourierTransform(x, 1, 512, Transform::kForwardHalf).id());
    graph.AddOutput("z", graph::FourierTransform(x, 0, n, Transform::kForward).id());
    Result<graph::Plan> plan = graph::Compile(graph, {.dynamic_sizes = {"n"}});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(TemplatesOf(*plan), 1U);
    Session session(Make(*std::move(plan)));
    for (const int64_t rows : {1, 0, 5, 130}) {
        const Tensor input = graph::testing::MakeRandomTensor(random_, ElementType::kF32,
                                                              {rows, 512, 1}, -1000, 1000);
        std::vector<double> expected;
        for (int64_t row = 0; row < rows; ++row) {
            std::vector<Complex> given;
            for (int64_t i = 0; i < 512; ++i) {
                given.emplace_back(input.At(row * 512 + i).number);
            }
            const std::vector<double> of_row = Expected(given, 512, Transform::kForwardHalf);
            expected.insert(expected.end(), of_row.begin(), of_row.end());
        }
        CheckNear(Run(session, {input})[0], expected);
    }
}

}  // namespace
}  // namespace fornax::runtime
