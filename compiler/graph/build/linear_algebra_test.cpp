// Factorisations: their products are the matrices again.
#include "compiler/graph/build/linear_algebra.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/linear_algebra_case.h"

namespace fornax::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(LinearAlgebraTest, DeterminantsOfMatricesWithoutElements) {
    EXPECT_THAT(Run(Determinant(Matrices(0, 0))), ElementsAre(1, 1));
}

TEST_F(LinearAlgebraTest, LuOfAnyShape) {
    for (const auto& [rows, columns] : {std::pair{3, 3}, {4, 2}, {2, 4}}) {
        Reset();
        const Val x = Matrices(rows, columns);
        const LuFactors factors = FactorLu(x, true);
        const Expr count = std::min(rows, columns);
        const Val lower = Triangle(SliceAxis(factors.lu, 2, 0, count), false, true);
        const Val upper = Triangle(SliceAxis(factors.lu, 1, 0, count), true, false);
        const Val order = PermutationOf(factors.pivots, rows);
        ExpectSame(MatMul(lower, upper), PermuteRows(x, order, false));
        ExpectSame(PermuteRows(PermuteRows(x, order, false), order, true), x);
    }
}

TEST_F(LinearAlgebraTest, LuTellsASingularMatrix) {
    const Val x = b().Constant(Tensor::FromFloats({1, 2, 2}, std::vector<float>{1, 2, 2, 4}));
    EXPECT_THAT(Run(FactorLu(x, true).info), ElementsAre(2));
    EXPECT_THAT(Run(FactorLu(x, true).pivots), ElementsAre(1, 1));
}

TEST_F(LinearAlgebraTest, SystemsAreSolved) {
    const Val a = Matrices(4, 4), right = Matrices(4, 3);
    const LuFactors factors = FactorLu(a, true);
    ExpectSame(MatMul(a, SolveLu(factors.lu, factors.pivots, right, false)), right);
    ExpectSame(MatMul(TransposeMatrix(a), SolveLu(factors.lu, factors.pivots, right, true)), right);
    for (const bool upper : {false, true}) {
        const Val x = SolveTriangular(a, right, {.upper = upper, .unit = true});
        const Val matrix = upper ? TransposeMatrix(Triangle(TransposeMatrix(a), false, true))
                                 : Triangle(a, false, true);
        ExpectSame(MatMul(matrix, x), right);
    }
}

TEST_F(LinearAlgebraTest, CholeskyOfAPositiveMatrix) {
    const Val x = Matrices(4, 4);
    const Val a = MatMul(x, TransposeMatrix(x));
    const CholeskyFactor factor = FactorCholesky(a);
    ExpectSame(MatMul(factor.lower, TransposeMatrix(factor.lower)), a);
    EXPECT_THAT(Run(factor.info), ElementsAre(0, 0));
    EXPECT_THAT(Run(FactorCholesky(-a).info), ElementsAre(1, 1));
}

TEST_F(LinearAlgebraTest, QrOfAnyShape) {
    for (const auto& [rows, columns] : {std::pair{4, 4}, {5, 3}, {3, 5}}) {
        Reset();
        const Val x = Matrices(rows, columns);
        const QrFactors factors = FactorQr(x);
        const Val q = OrthogonalOf(factors.packed, factors.factors, rows);
        ExpectOrthogonal(q);
        ExpectSame(MatMul(q, Triangle(factors.packed, true, false)), x);
        ExpectSame(Reflect(factors.packed, factors.factors, x, true),
                   MatMul(TransposeMatrix(q), x));
    }
}

TEST_F(LinearAlgebraTest, EigenvaluesOfSymmetricMatrices) {
    for (const int64_t n : {1, 2, 5, 6}) {
        Reset();
        const Val x = Matrices(n, n);
        const Val a = x + TransposeMatrix(x);
        const Eigen eigen = SymmetricEigen(a);
        ExpectOrthogonal(eigen.vectors);
        ExpectSame(MatMul(a, eigen.vectors), eigen.vectors * Unsqueeze(eigen.values, 1));
        const std::vector<float> values = Run(eigen.values);
        EXPECT_TRUE(std::is_sorted(values.begin(), values.begin() + n));
    }
}

// Rounding alone says what is mixed of vectors that have the same eigenvalue.
TEST_F(LinearAlgebraTest, EigenvaluesThatAreTheSame) {
    for (const int64_t n : {4, 6, 7, 8}) {
        Reset();
        const QrFactors qr = FactorQr(Matrices(n, n));
        const Val q = OrthogonalOf(qr.packed, qr.factors, n);
        std::vector<float> some;
        for (int64_t i = 0; i < n; ++i) {
            some.push_back(i % 2 == 0 ? 1.0F : -1.0F);
        }
        const Val values = b().Constant(Tensor::FromFloats({1, 1, n}, some));
        const Val product = MatMul(q * values, TransposeMatrix(q));
        const Val a = (product + TransposeMatrix(product)) * 0.5;
        const Eigen eigen = SymmetricEigen(a);
        ExpectOrthogonal(eigen.vectors);
        ExpectSame(MatMul(a, eigen.vectors), eigen.vectors * Unsqueeze(eigen.values, 1));
    }
}

TEST_F(LinearAlgebraTest, SingularValuesOfAnyShapeAndRank) {
    for (const auto& [rows, columns] : {std::pair{4, 4}, {5, 3}, {3, 6}, {1, 3}}) {
        for (const bool full : {false, true}) {
            Reset();
            const Val x = Matrices(rows, columns);
            const SingularValues svd = FactorSvd(x, true, full);
            ExpectOrthogonal(svd.left);
            ExpectOrthogonal(svd.right);
            const Val middle = WithDiagonal(svd.values, {2, svd.left.dim(2), svd.right.dim(2)});
            ExpectSame(MatMul(MatMul(svd.left, middle), TransposeMatrix(svd.right)), x);
        }
    }
    Reset();
    const Val zeros = b().Constant(Tensor::FromFloats({1, 2, 3}, std::vector<float>(6, 0.0F)));
    const SingularValues svd = FactorSvd(zeros, true, true);
    EXPECT_THAT(Run(svd.values), ElementsAre(0, 0));
    ExpectOrthogonal(svd.left);
    ExpectOrthogonal(svd.right);
}

TEST_F(LinearAlgebraTest, LargeMatricesAreRefusedWithTheirSize) {
    try {
        FactorLu(Matrices(100, 100), true);
        FAIL();
    } catch (const BuildError& error) {
        EXPECT_THAT(error.what(), HasSubstr("take 40000 bytes at once"));
    }
}

}  // namespace
}  // namespace fornax::graph
