// Matrices for tests of factorisations, and what is expected of these.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/linear_algebra.h"
#include "compiler/graph/build/product.h"
#include "compiler/graph/interpret/interpreter.h"

namespace fornax::graph {

class LinearAlgebraTest : public ::testing::Test {
  protected:
    LinearAlgebraTest() { Reset(); }
    Builder& b() { return *builders.back(); }
    // A batch of two matrices whose elements have no pattern.
    Val Matrices(int64_t rows, int64_t columns) {
        const int64_t count = 2 * rows * columns;
        std::vector<float> values;
        for (int64_t i = 0; i < count; ++i) {
            values.push_back(static_cast<float>(std::sin(1.0 + 7.3 * static_cast<double>(i * i))));
        }
        given.push_back(Tensor::FromFloats({2, rows, columns}, values));
        return b().Input(fmt::format("x{}", given.size()), {ElementType::kF32, {2, rows, columns}});
    }

    std::vector<float> Run(Val output) {
        Graph copy = *graphs.back();
        copy.AddOutput("out", output.id());
        const Status verified = Verify(copy);
        EXPECT_TRUE(verified.ok()) << verified.error().message;
        const Result<std::vector<Tensor>> results = Interpret(copy, given);
        EXPECT_TRUE(results.ok()) << results.error().message;
        std::vector<float> numbers;
        for (int64_t i = 0; results.ok() && i < (*results)[0].count(); ++i) {
            const Tensor& tensor = (*results)[0];
            numbers.push_back(static_cast<float>(tensor.At(i).ToDouble(tensor.element)));
        }
        return numbers;
    }

    void ExpectSame(Val a, Val c) {
        EXPECT_EQ(a.shape().ToString(), c.shape().ToString());
        EXPECT_THAT(Run(a), ::testing::Pointwise(::testing::FloatNear(2e-5F), Run(c)));
    }

    Val Triangle(Val x, bool upper, bool unit) {
        const Val row = b().Iota(ElementType::kI64, x.shape(), 1);
        const Val column = b().Iota(ElementType::kI64, x.shape(), 2);
        const Val inside = upper  ? map::LessEqual(row, column)
                           : unit ? map::Less(column, row)
                                  : map::LessEqual(column, row);
        const Val diagonal = unit ? Cast(map::Equal(row, column), x.element()) : Like(x, 0);
        return Where(inside, x, diagonal);
    }

    // The shape's diagonal has these values, [batch, k].
    Val WithDiagonal(Val values, const Shape& shape) {
        const Val row = b().Iota(ElementType::kI64, shape, 1);
        const Val column = b().Iota(ElementType::kI64, shape, 2);
        const Val last = b().Size(values.dim(1) - 1);
        const Val spread = Gather(values, {0, -1}, {map::Min(row, last)}, shape);
        const Val on = And(map::Equal(row, column), map::LessEqual(row, last));
        return Where(on, spread, Like(values, 0));
    }

    void ExpectOrthogonal(Val q) {
        const Val product = MatMul(TransposeMatrix(q), q);
        const Val row = b().Iota(ElementType::kI64, product.shape(), 1);
        const Val column = b().Iota(ElementType::kI64, product.shape(), 2);
        ExpectSame(product, Cast(map::Equal(row, column), ElementType::kF32));
    }

    // Another graph: the builder knows values of the one before.
    void Reset() {
        given.clear();
        graphs.push_back(std::make_unique<Graph>());
        builders.push_back(std::make_unique<Builder>(*graphs.back()));
    }

    std::vector<std::unique_ptr<Graph>> graphs;
    std::vector<std::unique_ptr<Builder>> builders;
    std::vector<Tensor> given;
};

}  // namespace fornax::graph
