// Quantised networks on a device: products and convolutions in integers with what stands between
// them, against the interpreter.
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/convolve.h"
#include "compiler/graph/build/product.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/loop/byte_product.h"
#include "compiler/graph/testing/compare_tensors.h"
#include "compiler/graph/testing/random_tensor.h"
#include "runtime/player_fixture.h"

namespace fornax::runtime {
namespace {

using graph::ElementType;
using graph::Graph;
using graph::Tensor;
using graph::Val;

class ByteProducts : public PlayerTest {
  protected:
    Tensor Bytes(ElementType type, std::vector<int64_t> dims) {
        uint8_t* data = nullptr;
        Tensor tensor = Tensor::Zeros(type, std::move(dims), &data);
        for (int64_t i = 0; i < tensor.count(); ++i) {
            data[i] = static_cast<uint8_t>(random_());
        }
        return tensor;
    }
    Val Input(graph::Builder& b, const std::vector<int64_t>& dims) {
        inputs_.push_back(
            graph::testing::MakeRandomTensor(random_, ElementType::kF32, dims, -4, 4));
        return b.Input("in" + std::to_string(inputs_.size()), inputs_.back().type());
    }
    // The value through bytes of one scale.
    static Val Quantised(Val x, ElementType type, double scale, double zero) {
        graph::Builder& b = x.builder();
        const Val by = b.Scalar(ElementType::kF32, scale), at = b.Scalar(type, zero);
        const Val codes =
            graph::Quantise(x, by, at, {}, type, graph::Overflow::kSaturate, ElementType::kF32);
        return graph::Dequantise(codes, by, at, {}, ElementType::kF32);
    }
    // Constant weights with a scale for each index of an axis. Powers of two, so that all that
    // follows is exact.
    Val Weights(graph::Builder& b, const std::vector<int64_t>& dims, int64_t axis) {
        std::vector<float> scales;
        for (int64_t i = 0; i < dims[static_cast<size_t>(axis)]; ++i) {
            scales.push_back(1.0F / static_cast<float>(1 << (4 + i % 3)));
        }
        const Val scale =
            b.Constant(Tensor::FromFloats({static_cast<int64_t>(scales.size())}, scales));
        return graph::Dequantise(b.Constant(Bytes(ElementType::kI8, dims)), scale, Val(), {axis, 0},
                                 ElementType::kF32);
    }
    // Gives how many products of bytes there are, and dispatches in all.
    std::pair<size_t, size_t> Check(Graph graph, Val output) {
        graph.AddOutput("y", output.id());
        const Result<std::vector<Tensor>> expected = graph::Interpret(graph, inputs_);
        EXPECT_TRUE(expected.ok()) << expected.error().message;
        Result<graph::Plan> plan = graph::Compile(std::move(graph), {});
        EXPECT_TRUE(plan.ok()) << plan.error().message;
        size_t products = 0;
        for (const graph::PlanKernel& kernel : plan->kernels) {
            const graph::loop::Scope scope = graph::loop::FindScope(kernel.loop);
            const auto product = graph::loop::FindProduct(kernel.loop, scope);
            products += product && graph::loop::FindByteProduct(kernel.loop, scope, *product);
        }
        const size_t steps = plan->steps.size();
        Session session(Make(std::move(*plan)));
        const std::vector<Tensor> actual = Run(session, inputs_);
        EXPECT_EQ(graph::testing::Difference(actual[0], (*expected)[0], 0), "");
        inputs_.clear();
        return {products, steps};
    }

    std::vector<Tensor> inputs_;

  private:
    std::mt19937_64 random_{11};
};

TEST_F(ByteProducts, OfMatrices) {
    for (const ElementType type : {ElementType::kU8, ElementType::kI8}) {
        for (const auto& [m, n, k] : {std::tuple(1, 50, 64), {7, 16, 4}, {33, 100, 36}}) {
            SCOPED_TRACE(fmt::format("{} {}x{}x{}", graph::Name(type), m, n, k));
            Graph graph;
            graph::Builder b(graph);
            const Val x = Quantised(Input(b, {m, k}), type, 0.125, 3);
            const Val y = Quantised(graph::MatMul(x, Weights(b, {k, n}, 1)), type, 0.25, 5);
            const auto [products, steps] = Check(std::move(graph), y);
            EXPECT_EQ(products, 1U);
            EXPECT_LE(steps, 3U);
        }
    }
}

TEST_F(ByteProducts, OfTransposedWeightsWithBias) {
    Graph graph;
    graph::Builder b(graph);
    const Val x = Quantised(Input(b, {3, 20}), ElementType::kU8, 0.5, 128);
    const Val y = graph::Gemm(x, Weights(b, {18, 20}, 0), Input(b, {18}), 1, 1, false, true);
    EXPECT_EQ(Check(std::move(graph), y).first, 1U);
}

// Weights whose depth is no number of words, or whose scale runs along k, stay products of floats.
TEST_F(ByteProducts, AreNotAllThatIsQuantised) {
    for (const auto& [k, axis] : {std::pair(18, 1), {20, 0}}) {
        Graph graph;
        graph::Builder b(graph);
        const Val x = Quantised(Input(b, {3, k}), ElementType::kU8, 0.5, 128);
        const Val y = graph::MatMul(x, Weights(b, {k, 24}, axis));
        EXPECT_EQ(Check(std::move(graph), y).first, 0U);
    }
}

// Memory keeps the products' layout through what stands between them: a dispatch for each
// convolution, one that quantises the input and one that puts the output in order.
TEST_F(ByteProducts, OfConvolutionsInARow) {
    for (const ElementType type : {ElementType::kU8, ElementType::kI8}) {
        SCOPED_TRACE(graph::Name(type));
        Graph graph;
        graph::Builder b(graph);
        const graph::SpatialWindow one{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
        const graph::SpatialWindow three{{3, 3}, {2, 1}, {1, 1}, {1, 0}, {1, 2}};
        const Val x = Quantised(Input(b, {2, 8, 9, 10}), type, 0.125, 3);
        Val y = graph::Convolve(x, Weights(b, {20, 8, 1, 1}, 0), Input(b, {20}), one, 1,
                                ElementType::kF32);
        y = Quantised(y, type, 0.5, 7);
        Val z =
            graph::Convolve(y, Weights(b, {20, 20, 3, 3}, 0), Val(), three, 1, ElementType::kF32);
        z = Quantised(z, type, 2, 1);
        z = graph::Convolve(z, Weights(b, {20, 1, 3, 3}, 0), Val(), three, 20, ElementType::kF32);
        z = Quantised(z, type, 4, 2);
        z = graph::Convolve(z, Weights(b, {12, 20, 1, 1}, 0), Val(), one, 1, ElementType::kF32);
        const auto [products, steps] = Check(std::move(graph), z);
        EXPECT_EQ(products, 3U);
        EXPECT_LE(steps, 6U);
    }
}

// Operators of integers: zero points of columns, and results that are integers.
TEST_F(ByteProducts, OfIntegers) {
    for (const ElementType type : {ElementType::kU8, ElementType::kI8}) {
        SCOPED_TRACE(graph::Name(type));
        Graph graph;
        graph::Builder b(graph);
        const Val scale = b.Scalar(ElementType::kF32, 0.125), zero = b.Scalar(type, 3);
        const auto codes = [&](Val x) {
            return graph::Quantise(x, scale, zero, {}, type, graph::Overflow::kSaturate,
                                   ElementType::kF32);
        };
        // Codes and zero points that leave a byte's range nowhere.
        uint8_t* codes_data = nullptr;
        uint8_t* zeros_data = nullptr;
        Tensor weights = Tensor::Zeros(ElementType::kU8, {24, 20}, &codes_data);
        Tensor zeros = Tensor::Zeros(ElementType::kU8, {20}, &zeros_data);
        for (int64_t i = 0; i < weights.count(); ++i) {
            codes_data[i] = static_cast<uint8_t>(i * 7 % 120);
        }
        for (int64_t i = 0; i < zeros.count(); ++i) {
            zeros_data[i] = static_cast<uint8_t>(40 + i);
        }
        const graph::SpatialWindow three{{3, 3}, {2, 1}, {1, 1}, {1, 0}, {1, 2}};
        Val y = graph::MatMulIntegers(codes(Input(b, {5, 24})), zero, b.Constant(weights),
                                      b.Constant(zeros));
        const Val image = codes(Input(b, {1, 8, 9, 10}));
        Val z =
            graph::ConvolveIntegers(image, zero, b.Constant(Bytes(ElementType::kI8, {20, 8, 3, 3})),
                                    b.Scalar(ElementType::kI8, 0), three, 1);
        y = graph::Cast(graph::Reduce(graph::Combine::kMax, y, {0, 1}, false), ElementType::kF32);
        z = graph::Cast(z, ElementType::kF32) + y;
        EXPECT_EQ(Check(std::move(graph), z).first, 2U);
    }
}

// Three channels are filled up to a word when they are put last.
TEST_F(ByteProducts, OfPicturesOfThreeChannels) {
    Graph graph;
    graph::Builder b(graph);
    const graph::SpatialWindow window{{5, 5}, {2, 2}, {1, 1}, {2, 2}, {2, 2}};
    const Val x = Quantised(Input(b, {1, 3, 14, 17}), ElementType::kU8, 0.125, 100);
    const Val y =
        graph::Convolve(x, Weights(b, {24, 3, 5, 5}, 0), Val(), window, 1, ElementType::kF32);
    const auto [products, steps] = Check(std::move(graph), y);
    EXPECT_EQ(products, 1U);
    EXPECT_LE(steps, 3U);
}

}  // namespace
}  // namespace fornax::runtime
