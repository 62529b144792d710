// The builder: broadcasting, what it knows of integers, bodies, and the clauses of its errors.
#include "compiler/graph/build/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/convolve.h"
#include "compiler/graph/build/normalise.h"
#include "compiler/graph/build/product.h"
#include "compiler/graph/interpret/interpreter.h"

namespace fornax::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BuilderTest : public ::testing::Test {
  protected:
    Val Floats(const std::string& name, Shape shape) {
        return b.Input(name, {ElementType::kF32, std::move(shape)});
    }
    // The graph's only output for these inputs.
    Tensor Run(Val output, const std::vector<Tensor>& inputs) {
        graph.AddOutput("out", output.id());
        EXPECT_EQ(Verify(graph).ok() ? "" : Verify(graph).error().message, "");
        const Result<std::vector<Tensor>> results = Interpret(graph, inputs);
        EXPECT_EQ(results.ok() ? "" : results.error().message, "");
        return results.ok() ? (*results)[0] : Tensor{};
    }
    static std::vector<double> Numbers(const Tensor& tensor) {
        std::vector<double> numbers;
        for (int64_t i = 0; i < tensor.count(); ++i) {
            numbers.push_back(tensor.At(i).ToDouble(tensor.element));
        }
        return numbers;
    }
    static std::string Clause(const std::function<void()>& build) {
        try {
            build();
        } catch (const BuildError& error) {
            return error.what();
        }
        return "";
    }

    Graph graph;
    Builder b{graph};
    const Expr n = b.sizes().Declare("n", 4);
    const Expr m = b.sizes().Declare("m", 3);
};

TEST_F(BuilderTest, OperandsAreBroadcastByViews) {
    const Val x = Floats("x", {2, 1, 3}), y = Floats("y", {2, 1});
    const Val sum = x + y;
    EXPECT_EQ(sum.shape().ToString(), "[2,2,3]");
    EXPECT_THAT(
        Numbers(Run(sum, {Tensor::FromFloats({2, 1, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}),
                          Tensor::FromFloats({2, 1}, std::vector<float>{10, 20})})),
        ElementsAre(11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26));
}

TEST_F(BuilderTest, SymbolicSizesBroadcastByTheirNames) {
    EXPECT_EQ((Floats("x", {n, 1}) * Floats("y", {m})).shape().ToString(), "[n,m]");
    EXPECT_TRUE(b.sizes().guards().empty());
    // The hints decide whether two symbols are equal, and a guard records the assumption.
    const std::string clause = Clause([&] { Floats("u", {n}) + Floats("v", {m}); });
    EXPECT_EQ(clause, "the sizes n and m of operands are not the same");
}

TEST_F(BuilderTest, SizesThatDoNotFitAreRefusedWithTheShapes) {
    EXPECT_EQ(Clause([&] { Floats("x", {2, 3}) + Floats("y", {4, 3}); }),
              "the sizes 2 and 4 of the operands [2,3], [4,3] do not fit");
}

TEST_F(BuilderTest, SmallConstantsAreFolded) {
    const Val product = b.Scalar(ElementType::kF32, 3) * b.Scalar(ElementType::kF32, 4) + 1.0;
    ASSERT_NE(b.ConstantOf(product), nullptr);
    EXPECT_THAT(Numbers(*b.ConstantOf(product)), ElementsAre(13));
}

TEST_F(BuilderTest, ScalarsAreNotRepeatedInMemory) {
    const Val zeros = b.Full(ElementType::kF32, {1000, 1000}, 0);
    EXPECT_EQ(b.ConstantOf(zeros), nullptr);
}

TEST_F(BuilderTest, IntegersOfSizesStayKnownThroughArithmetic) {
    const Val x = Floats("x", {n, m, 8});
    const Shape shape = x.shape();
    const Val sizes = b.Sizes(shape.dims());
    const Val rest = SliceAxis(sizes, 0, 1, 2);
    const Val volume = Reduce(Combine::kProduct, rest, {0}, true);
    const Val all = Concat({SliceAxis(sizes, 0, 0, 1), volume + 2.0}, 0);
    const std::optional<std::vector<Expr>> known = b.KnownIntegers(all);
    ASSERT_TRUE(known.has_value());
    EXPECT_THAT(*known, ElementsAre(n, m * 8 + 2));
    EXPECT_TRUE(b.sizes().guards().empty());
    // As data it is computed from the sizes.
    const Tensor result = Run(all, {Tensor::FromFloats({4, 3, 8}, std::vector<float>(96))});
    EXPECT_THAT(Numbers(result), ElementsAre(4, 26));
}

TEST_F(BuilderTest, ComparisonsOfSizesAreDecidedWithAGuard) {
    const Val is_one = map::Equal(b.Size(n), b.Integer(ElementType::kI64, 1));
    EXPECT_EQ(b.RequireInteger(is_one, "the condition"), 0);
    ASSERT_EQ(b.sizes().guards().size(), 1U);
    EXPECT_EQ(b.sizes().guards()[0].ToString(), "n != 1");
}

TEST_F(BuilderTest, FloatsOfSizesBecomeFixedWhenTheyAreNeeded) {
    const Val half = map::Floor(Cast(b.Size(n), ElementType::kF32) * 0.5);
    EXPECT_TRUE(b.sizes().guards().empty());
    EXPECT_EQ(b.RequireInteger(Cast(half, ElementType::kI64), "the size"), 2);
    ASSERT_EQ(b.sizes().guards().size(), 1U);
    EXPECT_EQ(b.sizes().guards()[0].ToString(), "n == 4");
}

TEST_F(BuilderTest, DataAreNotKnown) {
    const Val x = b.Input("x", {ElementType::kI64, {2}});
    EXPECT_FALSE(b.KnownIntegers(x).has_value());
    EXPECT_EQ(Clause([&] { b.RequireIntegers(x, "the axes"); }), "the axes depends on the data");
}

TEST_F(BuilderTest, AxesCountFromTheEnd) {
    const Val x = Floats("x", {2, 3, 4});
    EXPECT_EQ(Sum(x, {-1, 0}, true).shape().ToString(), "[1,3,1]");
    EXPECT_EQ(Clause([&] { Sum(x, {3}); }), "the axis 3 is not in -3..2");
    EXPECT_EQ(Clause([&] { Sum(x, {1, -2}); }), "an axis is given twice");
}

TEST_F(BuilderTest, CompositesKeepTheirBodies) {
    const Val y = Softmax(Floats("x", {n, 5}), -1);
    const auto* composite = graph.ProducerAs<op::Composite>(y.id());
    ASSERT_NE(composite, nullptr);
    EXPECT_EQ(composite->name, "softmax");
    EXPECT_EQ(std::get<int64_t>(composite->attributes.at("axis")), 1);
    EXPECT_EQ(y.shape().ToString(), "[n,5]");
}

TEST_F(BuilderTest, LoopsCarryValues) {
    const Val x = Floats("x", {2});
    const Vals results =
        b.Loop(b.Integer(ElementType::kI64, 5), {b.Full(ElementType::kF32, {2}, 1)}, {x},
               [](Builder&, Vals v) -> Vals { return {v[1] * v[2]}; });
    EXPECT_THAT(Numbers(Run(results[0], {Tensor::FromFloats({2}, std::vector<float>{2, 3})})),
                ElementsAre(32, 243));
}

TEST_F(BuilderTest, ConvolutionsHaveSymbolicBatchAndImage) {
    const Val x = Floats("x", {n, 4, m, m}), w = Floats("w", {6, 4, 3, 3});
    const SpatialWindow window{{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
    const Val y = Convolve(x, w, Val(), window, 1, ElementType::kF32);
    EXPECT_EQ(y.dim(0), n);
    EXPECT_EQ(*y.dim(2).Evaluate({{Symbol("m"), 10}}), 5);
    EXPECT_THAT(Clause([&] { Convolve(x, w, Val(), window, 3, ElementType::kF32); }),
                HasSubstr("4 channels"));
}

TEST_F(BuilderTest, MatMulBroadcastsBatches) {
    const Val y = MatMul(Floats("a", {n, 1, 2, 3}), Floats("b", {m, 3, 5}));
    EXPECT_EQ(y.shape().ToString(), "[n,m,2,5]");
    EXPECT_EQ(Clause([&] { MatMul(Floats("c", {2, 3}), Floats("d", {4, 5})); }),
              "the factors are [2,3] and [4,5]");
}

TEST_F(BuilderTest, EinsumTakesDiagonalsAndSums) {
    const Val y = Einsum("ii,i->", {Floats("a", {2, 2}), Floats("b", {2})});
    EXPECT_THAT(Numbers(Run(y, {Tensor::FromFloats({2, 2}, std::vector<float>{1, 2, 3, 4}),
                                Tensor::FromFloats({2}, std::vector<float>{10, 100})})),
                ElementsAre(410));
    EXPECT_EQ(Clause([&] { Einsum("ij,jk", {b.Scalar(ElementType::kF32, 1)}); }),
              "the equation has 2 terms for 1 operands");
}

}  // namespace
}  // namespace fornax::graph
