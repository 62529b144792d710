// Sums of products in tiles on a device: sizes around the tile's, layouts, padding and epilogues,
// against the interpreter.
#include <algorithm>
#include <random>
#include <set>

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

using graph::Expr;
using graph::Graph;
using graph::Tensor;
using graph::ValueId;
namespace op = graph::op;

class Products : public PlayerTest {
  protected:
    Tensor Random(const std::vector<int64_t>& dims) {
        return graph::testing::MakeRandomTensor(random_, graph::ElementType::kF32, dims, -4, 4);
    }
    Tensor RandomOf(graph::ElementType element, const std::vector<int64_t>& dims) {
        return graph::testing::MakeRandomTensor(random_, element, dims, -4, 4);
    }
    ValueId Input(Graph& graph, const std::vector<int64_t>& dims) {
        inputs_.push_back(Random(dims));
        return graph.AddInput("in" + std::to_string(inputs_.size()), inputs_.back().type());
    }
    static ValueId Add(Graph& graph, graph::Operation operation, std::vector<ValueId> operands) {
        const Result<graph::NodeId> node =
            graph.AddNode("node", std::move(operation), std::move(operands));
        EXPECT_TRUE(node.ok()) << node.error().message;
        return graph[*node].results[0];
    }
    // The graph's one output on the device is the interpreter's to the last bit, since all numbers
    // are small and whole; and the product was made in tiles.
    void Check(Graph graph, ValueId output, const graph::CompileOptions& options = {}) {
        graph.AddOutput("y", output);
        const Result<std::vector<Tensor>> expected = graph::Interpret(graph, inputs_);
        ASSERT_TRUE(expected.ok()) << expected.error().message;
        Result<graph::Plan> plan = graph::Compile(std::move(graph), options);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        bool tiles = false;
        for (const graph::PlanKernel& kernel : plan->kernels) {
            tiles = tiles || kernel.loop.mapping == graph::loop::Mapping::kProduct;
        }
        EXPECT_TRUE(tiles);
        Session session(Make(std::move(*plan)));
        const std::vector<Tensor> actual = Run(session, inputs_);
        ASSERT_EQ(actual.size(), 1U);
        EXPECT_EQ(graph::testing::Difference(actual[0], (*expected)[0], 0), "");
    }

    // Whether a kernel of the plan multiplies words of bf16.
    static bool HasWords(Graph graph, ValueId output, const graph::CompileOptions& options) {
        graph.AddOutput("y", output);
        const Result<graph::Plan> plan = graph::Compile(std::move(graph), options);
        EXPECT_TRUE(plan.ok());
        return std::ranges::any_of(plan->kernels, [](const graph::PlanKernel& kernel) {
            const graph::loop::Scope scope = graph::loop::FindScope(kernel.loop);
            const auto product = graph::loop::FindProduct(kernel.loop, scope);
            return product && graph::loop::FindByteProduct(kernel.loop, scope, *product);
        });
    }

    // Whether a kernel of the plan has a result in the bytes of an operand.
    static bool IsInPlace(Graph graph, ValueId output) {
        graph.AddOutput("y", output);
        const Result<graph::Plan> plan = graph::Compile(std::move(graph), {});
        EXPECT_TRUE(plan.ok());
        return std::ranges::any_of(plan->steps, [](const graph::PlanStep& step) {
            const std::vector<graph::BlockId>& blocks =
                std::get<graph::DispatchStep>(step).bindings;
            return std::set(blocks.begin(), blocks.end()).size() < blocks.size();
        });
    }

    std::vector<Tensor> inputs_;

    std::mt19937_64 random_{3};
};

// Labels "km" and "nk" are operands that lie the other way round.
TEST_F(Products, OfAnySizeAndLayout) {
    const std::vector<std::vector<int64_t>> sizes = {
        {4, 8, 8},      {16, 16, 16},   {17, 33, 19},  {31, 64, 16}, {32, 63, 48},
        {65, 70, 40},   {49, 70, 32},   {36, 150, 48}, {72, 33, 64}, {4, 33, 60},
        {130, 128, 64}, {37, 1617, 64}, {19, 2400, 43}};
    for (const std::vector<int64_t>& size : sizes) {
        for (const char* a : {"mk", "km"}) {
            for (const char* b : {"kn", "nk"}) {
                for (const bool constant : {false, true}) {
                    SCOPED_TRACE(fmt::format("{}x{}x{} {} {} {}", size[0], size[1], size[2], a, b,
                                             constant));
                    const auto dims = [&](const char* labels) {
                        std::vector<int64_t> result;
                        for (const char* label = labels; *label != 0; ++label) {
                            result.push_back(size[*label == 'm' ? 0 : *label == 'n' ? 1 : 2]);
                        }
                        return result;
                    };
                    inputs_.clear();
                    Graph graph;
                    const ValueId left = Input(graph, dims(a));
                    const ValueId right = constant ? graph.AddConstant("weights", Random(dims(b)))
                                                   : Input(graph, dims(b));
                    const ValueId sum = Add(
                        graph, op::Contract{a, b, "mn", graph::ElementType::kF32}, {left, right});
                    const ValueId least = Add(graph, op::Broadcast{graph::Shape{size[0], size[1]}},
                                              {Input(graph, {1, size[1]})});
                    const ValueId output =
                        Add(graph, op::Map{graph::ScalarFunction::kMax}, {sum, least});
                    Check(std::move(graph), output);
                }
            }
        }
    }
}

// Operands of 16 bits are multiplied and added in f32. All numbers are small and whole, so that the
// sums are exact before they are rounded once.
TEST_F(Products, OfNarrowFloats) {
    const std::vector<std::vector<int64_t>> sizes = {{1, 64, 96},  {3, 90, 50},   {8, 33, 128},
                                                     {16, 16, 16}, {17, 33, 19},  {49, 70, 32},
                                                     {65, 70, 40}, {128, 96, 64}, {130, 64, 512}};
    using graph::ElementType;
    const std::tuple<ElementType, ElementType, ElementType> types[] = {
        {ElementType::kF16, ElementType::kF16, ElementType::kF16},
        {ElementType::kBF16, ElementType::kBF16, ElementType::kBF16},
        {ElementType::kF16, ElementType::kF16, ElementType::kF32},
        {ElementType::kBF16, ElementType::kBF16, ElementType::kF32},
        {ElementType::kF16, ElementType::kBF16, ElementType::kF32},
        {ElementType::kF32, ElementType::kF16, ElementType::kF32}};
    for (const std::vector<int64_t>& size : sizes) {
        for (const auto& [a, b, sum] : types) {
            for (const char* labels : {"kn", "nk"}) {
                for (const bool constant : {false, true}) {
                    const int64_t m = size[0], n = size[1], k = size[2];
                    // Columns whose ks lie side by side are packed only in constants that are
                    // worth it.
                    if (m <= 8 && labels[0] == 'n' && (!constant || n * k < 4096)) {
                        continue;
                    }
                    for (const bool words : {false, true}) {
                        SCOPED_TRACE(fmt::format("{}x{}x{} {} {} {} {} {} {}", m, n, k,
                                                 graph::Name(a), graph::Name(b), graph::Name(sum),
                                                 labels, constant, words));
                        inputs_.clear();
                        Graph graph;
                        const auto dims = labels[0] == 'k' ? std::vector{k, n} : std::vector{n, k};
                        inputs_.push_back(RandomOf(a, {m, k}));
                        const ValueId left = graph.AddInput("x", inputs_.back().type());
                        ValueId right;
                        if (constant) {
                            right = graph.AddConstant("weights", RandomOf(b, dims));
                        } else {
                            inputs_.push_back(RandomOf(b, dims));
                            right = graph.AddInput("w", inputs_.back().type());
                        }
                        ValueId y =
                            Add(graph, op::Contract{"mk", labels, "mn", sum}, {left, right});
                        const graph::CompileOptions options = {.bfloat16_products = words};
                        if (constant && words && a == ElementType::kBF16 &&
                            b == ElementType::kBF16 && m >= 49 && n >= 32) {
                            EXPECT_TRUE(HasWords(graph, y, options));
                        }
                        Check(std::move(graph), y, options);
                    }
                }
            }
        }
    }
}

// Few rows read each element of the weights once; an epilogue and a row's factor are their own.
TEST_F(Products, OfFewRows) {
    const std::vector<std::vector<int64_t>> sizes = {
        {1, 8, 8}, {1, 33, 128}, {2, 64, 64}, {3, 45, 96}, {5, 100, 50}, {8, 32, 130}, {8, 31, 9}};
    for (const std::vector<int64_t>& size : sizes) {
        const int64_t m = size[0], n = size[1], k = size[2];
        for (const char* b : {"kn", "nk"}) {
            for (const bool constant : {false, true}) {
                // Columns whose ks lie side by side are packed only in constants that are worth it.
                if (b[0] == 'n' && (!constant || n * k < 4096)) {
                    continue;
                }
                SCOPED_TRACE(fmt::format("{}x{}x{} {} {}", m, n, k, b, constant));
                inputs_.clear();
                Graph graph;
                const std::vector<int64_t> dims =
                    b[0] == 'k' ? std::vector{k, n} : std::vector{n, k};
                const ValueId left = Input(graph, {m, k});
                const ValueId right =
                    constant ? graph.AddConstant("weights", Random(dims)) : Input(graph, dims);
                const ValueId sum = Add(
                    graph, op::Contract{"mk", b, "mn", graph::ElementType::kF32}, {left, right});
                const ValueId factor =
                    Add(graph, op::Broadcast{graph::Shape{m, n}}, {Input(graph, {m, 1})});
                const ValueId output =
                    Add(graph, op::Map{graph::ScalarFunction::kMul}, {sum, factor});
                Check(std::move(graph), output);
            }
        }
    }
}

// Whole numbers are exact as bf16, so that rounding the weights changes nothing here.
TEST_F(Products, OfFewRowsInMediumPrecision) {
    for (const auto& [m, n, k] : {std::tuple(1, 64, 64), {3, 90, 50}, {8, 33, 128}}) {
        for (const char* b : {"kn", "nk"}) {
            SCOPED_TRACE(fmt::format("{}x{}x{} {}", m, n, k, b));
            inputs_.clear();
            Graph graph;
            const ValueId left = Input(graph, {m, k});
            const ValueId right = graph.AddConstant(
                "weights",
                Random(b[0] == 'k' ? std::vector<int64_t>{k, n} : std::vector<int64_t>{n, k}));
            const ValueId y =
                Add(graph, op::Contract{"mk", b, "mn", graph::ElementType::kF32}, {left, right});
            Check(std::move(graph), y, {.precision = graph::Precision::kMedium});
        }
    }
}

// Medium precision rounds weights to 8 bits, and nothing else.
TEST_F(Products, OfMediumPrecisionRoundWeights) {
    std::vector<float> numbers(64 * 64, 1 + 0x1p-7F + 0x1p-9F);
    numbers[0] = 1 + 0x1p-8F + 0x1p-20F;
    const float exact = 1 + 0x1p-12F;
    for (const auto precision : {graph::Precision::kHighest, graph::Precision::kMedium}) {
        Graph graph;
        std::vector<float> x(64, 0);
        x[0] = exact;
        const ValueId left = graph.AddInput("x", {graph::ElementType::kF32, graph::Shape({1, 64})});
        const ValueId right = graph.AddConstant("weights", Tensor::FromFloats({64, 64}, numbers));
        graph.AddOutput("y", Add(graph, op::Contract{"mk", "kn", "mn", graph::ElementType::kF32},
                                 {left, right}));
        Result<graph::Plan> plan = graph::Compile(std::move(graph), {.precision = precision});
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        Session session(Make(std::move(*plan)));
        const std::vector<Tensor> y = Run(session, {Tensor::FromFloats({1, 64}, x)});
        const bool medium = precision == graph::Precision::kMedium;
        EXPECT_EQ(y[0].At(0).number, exact * (medium ? 1 + 0x1p-7F : numbers[0]));
        EXPECT_EQ(y[0].At(1).number, exact * (medium ? 1 + 0x1p-7F : numbers[1]));
    }
}

// Whole numbers are exact as bf16, and their sums as f32: products of words, with columns that do
// not fill the last panel, and values that others read too.
TEST_F(Products, OfManyRowsInMediumPrecision) {
    const graph::CompileOptions medium = {.precision = graph::Precision::kMedium,
                                          .bfloat16_products = true};
    for (const auto& [m, n, k] : {std::tuple(9, 48, 64), {33, 100, 50}, {16, 64, 34}}) {
        for (const char* b : {"kn", "nk"}) {
            SCOPED_TRACE(fmt::format("{}x{}x{} {}", m, n, k, b));
            inputs_.clear();
            Graph graph;
            const ValueId x = Input(graph, {m, k});
            const ValueId negative = Add(graph, op::Map{graph::ScalarFunction::kNeg}, {x});
            const ValueId weights = graph.AddConstant(
                "weights",
                Random(b[0] == 'k' ? std::vector<int64_t>{k, n} : std::vector<int64_t>{n, k}));
            const ValueId y = Add(graph, op::Contract{"mk", b, "mn", graph::ElementType::kF32},
                                  {negative, weights});
            ASSERT_TRUE(HasWords(graph, y, medium));
            Check(std::move(graph), y, medium);
        }
    }
}

// Convolutions of 3 x 3 and 1 x 1: what lies between them is stored as bf16.
TEST_F(Products, OfConvolutionsInMediumPrecision) {
    const graph::CompileOptions medium = {.precision = graph::Precision::kMedium,
                                          .bfloat16_products = true};
    for (const int64_t stride : {1, 2}) {
        SCOPED_TRACE(stride);
        inputs_.clear();
        Graph graph;
        graph::Builder b(graph);
        graph::SpatialWindow window;
        window.size = {3, 3};
        window.strides = {stride, stride};
        window.dilations = {1, 1};
        window.low = {1, 1};
        window.high = {1, 1};
        graph::Val x(b, Input(graph, {2, 6, 9, 11}));
        x = graph::Convolve(x, b.Constant(Random({64, 6, 3, 3})), graph::Val(), window, 1,
                            graph::ElementType::kF32);
        x = graph::Min(graph::Max(x, -4.0), 4.0);
        window.strides = {1, 1};
        x = graph::Convolve(x, b.Constant(Random({52, 64, 3, 3})), graph::Val(), window, 1,
                            graph::ElementType::kF32);
        window.size = {1, 1};
        window.low = {0, 0};
        window.high = {0, 0};
        x = graph::Min(graph::Max(x, -4.0), 4.0);
        x = graph::Convolve(x, b.Constant(Random({48, 52, 1, 1})), graph::Val(), window, 1,
                            graph::ElementType::kF32);
        ASSERT_TRUE(HasWords(graph, x.id(), medium));
        Check(std::move(graph), x.id(), medium);
    }
}

// Both operands are rounded to 8 bits, and nothing else.
TEST_F(Products, OfManyRowsInMediumPrecisionRoundOperands) {
    Graph graph;
    std::vector<float> x(16 * 64, 0), weights(64 * 64, 1 + 0x1p-7F + 0x1p-9F);
    x[0] = 1 + 0x1p-8F + 0x1p-20F;
    x[1] = 0x1p-20F;
    graph.AddOutput("y",
                    Add(graph, op::Contract{"mk", "kn", "mn", graph::ElementType::kF32},
                        {graph.AddInput("x", {graph::ElementType::kF32, graph::Shape({16, 64})}),
                         graph.AddConstant("weights", Tensor::FromFloats({64, 64}, weights))}));
    Result<graph::Plan> plan = graph::Compile(
        std::move(graph), {.precision = graph::Precision::kMedium, .bfloat16_products = true});
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    Session session(Make(std::move(*plan)));
    const std::vector<Tensor> y = Run(session, {Tensor::FromFloats({16, 64}, x)});
    EXPECT_EQ(y[0].At(0).number, (1 + 0x1p-7) * (1 + 0x1p-7) + 0x1p-20);
}

// Batches of few rows, and operands that are computed.
TEST_F(Products, OfFewRowsInBatches) {
    Graph graph;
    const ValueId a = Input(graph, {3, 2, 40});
    const ValueId negative = Add(graph, op::Map{graph::ScalarFunction::kNeg}, {a});
    const ValueId b = Input(graph, {3, 40, 70});
    const ValueId y =
        Add(graph, op::Contract{"bmk", "bkn", "bmn", graph::ElementType::kF32}, {negative, b});
    Check(std::move(graph), y);
}

// Weights of 4 bits are decoded in registers, or for many rows before.
TEST_F(Products, OfBlocks) {
    for (const int64_t rows : {1, 5, 8, 40}) {
        for (const graph::BlockWeights form :
             {graph::BlockWeights{64, 64, 4, 32}, {100, 50, 4, 32}, {96, 33, 2, 16}}) {
            SCOPED_TRACE(fmt::format("{}x{}x{}", rows, form.n, form.k));
            inputs_.clear();
            Graph graph;
            graph::Builder b(graph);
            uint8_t* bytes = nullptr;
            const Tensor weights =
                Tensor::Zeros(graph::ElementType::kU8,
                              {form.n, form.blocks(), form.block * form.bits / 8}, &bytes);
            for (int64_t i = 0; i < weights.count(); ++i) {
                bytes[i] = static_cast<uint8_t>(i * 37 + i / 5);
            }
            const graph::Val y = graph::MatMulBlocks(
                graph::Val(b, Input(graph, {rows, form.k})), b.Constant(weights),
                b.Constant(Random({form.n, form.blocks()})),
                b.Constant(Random({form.n, form.blocks()})), graph::Val(), form);
            Check(std::move(graph), y.id());
        }
    }
}

// A convolution with padding, stride and groups: the places of its windows are computed for the
// tiles.
TEST_F(Products, OfConvolutions) {
    for (const int64_t stride : {1, 2}) {
        SCOPED_TRACE(stride);
        inputs_.clear();
        Graph graph;
        const ValueId x = Input(graph, {2, 2, 5, 11, 13});  // batch, group, channel, height, width
        const ValueId weights = graph.AddConstant("weights", Random({2, 6, 5, 3, 3}));
        const ValueId zero = graph.AddConstant("zero", Tensor::FromFloats({}, std::vector{0.0F}));
        const std::vector<Expr> around = {0, 0, 0, 1, 1};
        const ValueId padded = Add(graph, op::Pad{around, around, {0, 0, 0, 0, 0}}, {x, zero});
        const ValueId rows = Add(graph, op::Window{3, 3, stride, 1}, {padded});
        const ValueId windows = Add(graph, op::Window{4, 3, stride, 1}, {rows});
        const ValueId y =
            Add(graph, op::Contract{"gochw", "bgcijhw", "bgoij", graph::ElementType::kF32},
                {weights, windows});
        Check(std::move(graph), y);
    }
}

// A computed operand, many rows and a depth whose last matrix is not whole take the most memory of
// a workgroup.
TEST_F(Products, FitTheMemoryOfAWorkgroup) {
    Graph graph;
    const ValueId x = Input(graph, {64, 80});
    const ValueId rows = Add(graph, op::Window{0, 3, 1, 1}, {x});
    const ValueId weights = graph.AddConstant("weights", Random({130, 23, 3}));
    const ValueId few =
        Add(graph, op::Slice{{0, 0, 0}, {1, 1, 1}, graph::Shape{23, 80, 3}}, {rows});
    const ValueId y =
        Add(graph, op::Contract{"ock", "cwk", "ow", graph::ElementType::kF32}, {weights, few});
    Check(std::move(graph), y);
}

// What is added to a product and read by nothing else is where the sums are stored: tiles, rows and
// columns that are computed twice or do not exist must not add it twice.
TEST_F(Products, InTheBytesOfWhatTheyAdd) {
    const std::vector<std::vector<int64_t>> sizes = {
        {4, 33, 60},   {5, 64, 64},   {16, 16, 16}, {17, 33, 19},   {31, 64, 16}, {36, 150, 48},
        {49, 70, 300}, {65, 70, 288}, {72, 33, 64}, {130, 128, 64}, {97, 80, 272}};
    for (const std::vector<int64_t>& size : sizes) {
        SCOPED_TRACE(fmt::format("{}x{}x{}", size[0], size[1], size[2]));
        inputs_.clear();
        Graph graph;
        const auto product = [&](ValueId a, const std::vector<int64_t>& dims) {
            const ValueId b = graph.AddConstant(
                "weights",
                graph::testing::MakeRandomTensor(random_, graph::ElementType::kF32, dims, -2, 2));
            return Add(graph, op::Contract{"mk", "kn", "mn", graph::ElementType::kF32}, {a, b});
        };
        const ValueId first = product(Input(graph, {size[0], 48}), {48, size[1]});
        const ValueId other = product(Input(graph, {size[0], 48}), {48, size[2]});
        const ValueId sum = product(other, {size[2], size[1]});
        const ValueId output = Add(graph, op::Map{graph::ScalarFunction::kSub}, {sum, first});
        EXPECT_TRUE(IsInPlace(graph, output));
        Check(std::move(graph), output);
    }
}

}  // namespace
}  // namespace fornax::runtime
