// Factorisations of complex matrices: their products are the matrices again, as those of real ones
// are in linear_algebra_test.cpp, and they have what LAPACK says of them beside that.
#include "compiler/graph/build/complex.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/graph/build/linear_algebra_case.h"
#include "compiler/graph/build/matrix_loops.h"

namespace fornax::graph {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Complex Product(const Complex& a, const Complex& b) {
    return {MatMul(a.real, b.real) - MatMul(a.imaginary, b.imaginary),
            MatMul(a.real, b.imaginary) + MatMul(a.imaginary, b.real)};
}

class ComplexMatrices : public LinearAlgebraTest {
  protected:
    Complex Some(int64_t rows, int64_t columns) {
        // Imaginary parts are other numbers.
        const Val real = Matrices(rows, columns);
        return {real, map::Sin(Matrices(rows, columns) * 37.0 + 1.0)};
    }

    void ExpectSame(const Complex& a, const Complex& c) {
        LinearAlgebraTest::ExpectSame(a.real, c.real);
        LinearAlgebraTest::ExpectSame(a.imaginary, c.imaginary);
    }

    void ExpectUnitary(const Complex& q) {
        const Complex product = Product(Adjoint(q), q);
        ExpectSame(product, Identity<Complex>(b(), ElementType::kF32, product.shape()));
    }

    // A triangle of a matrix; the diagonal of a lower one is of ones.
    Complex Part(const Complex& x, bool upper) {
        const Val row = RowNumbers(b(), x.shape()), column = ColumnNumbers(b(), x.shape());
        const Val inside = upper ? map::LessEqual(row, column) : map::Less(column, row);
        const Complex rest = upper ? Zeros<Complex>(b(), x.element(), x.shape())
                                   : Identity<Complex>(b(), x.element(), x.shape());
        return Where(inside, x, rest);
    }

    Val DiagonalOf(Val x, int64_t count) {
        const Val place = b().Iota(ElementType::kI64, {2, count}, 1);
        return Gather(x, {0, -1, -2}, {place, place}, {2, count});
    }
};

TEST_F(ComplexMatrices, QuotientsNeitherOverflowNorVanish) {
    const auto number = [&](std::vector<float> values) {
        return b().Constant(Tensor::FromFloats({static_cast<int64_t>(values.size())}, values));
    };
    const Complex x{number({3e30F, 1e-30F, 2}), number({4e30F, 0, 0})};
    const Complex y{number({1e30F, 2e-30F, 0}), number({1e30F, 0, -4})};
    const Complex quotient = x / y;
    EXPECT_THAT(Run(quotient.real), Pointwise(FloatNear(1e-6F), {3.5F, 0.5F, 0.0F}));
    EXPECT_THAT(Run(quotient.imaginary), Pointwise(FloatNear(1e-6F), {0.5F, 0.0F, 0.5F}));
    EXPECT_THAT(Run(Size(x) / 1e30), Pointwise(FloatNear(1e-5F), {5.0F, 0.0F, 0.0F}));
}

TEST_F(ComplexMatrices, LuOfAnyShape) {
    for (const auto& [rows, columns] : {std::pair{3, 3}, {4, 2}, {2, 4}}) {
        Reset();
        const Complex x = Some(rows, columns);
        const LuFactors factors = FactorLu(x, true);
        const Expr count = std::min(rows, columns);
        const Complex lower = Part(SliceAxis(factors.lu, 2, 0, count), false);
        const Complex upper = Part(SliceAxis(factors.lu, 1, 0, count), true);
        const Val order = PermutationOf(factors.pivots, rows);
        ExpectSame(Product(lower, upper), PermuteRows(x, order, false));
    }
}

TEST_F(ComplexMatrices, PivotsAreThoseOfTheSumOfBothParts) {
    // |3 + 3i| < |4.5|, but 3 + 3 > 4.5.
    const Val real = b().Constant(Tensor::FromFloats({1, 2, 2}, std::vector<float>{4.5F, 1, 3, 1}));
    const Val imaginary =
        b().Constant(Tensor::FromFloats({1, 2, 2}, std::vector<float>{0, 1, 3, 2}));
    const LuFactors factors = FactorLu(Complex{real, imaginary}, true);
    EXPECT_THAT(Run(factors.pivots), ElementsAre(1, 1));
    EXPECT_THAT(Run(factors.info), ElementsAre(0));
    // Imaginary numbers are no zeros, and a column of zeros is told.
    EXPECT_THAT(Run(FactorLu(Complex{real * 0.0, imaginary}, true).info), ElementsAre(0));
    EXPECT_THAT(Run(FactorLu(Complex{real * 0.0, imaginary * 0.0}, true).info), ElementsAre(1));
}

TEST_F(ComplexMatrices, SystemsAreSolved) {
    const Complex a = Some(4, 4), right = Some(4, 3);
    const LuFactors factors = FactorLu(a, true);
    ExpectSame(Product(a, SolveLu(factors.lu, factors.pivots, right, false)), right);
    ExpectSame(Product(TransposeMatrix(a), SolveLu(factors.lu, factors.pivots, right, true)),
               right);
    const Complex lower = Part(a, false);
    ExpectSame(Product(lower, SolveTriangular(a, right, {.upper = false, .unit = true})), right);
    const Complex upper = Part(a, true);
    ExpectSame(Product(upper, SolveTriangular(a, right, {.upper = true, .unit = false})), right);
}

TEST_F(ComplexMatrices, CholeskyOfAPositiveMatrix) {
    const Complex x = Some(4, 4);
    const Complex a = Product(x, Adjoint(x));
    const CholeskyFactor factor = FactorCholesky(a);
    ExpectSame(Product(factor.lower, Adjoint(factor.lower)), a);
    EXPECT_THAT(Run(factor.info), ElementsAre(0, 0));
    EXPECT_THAT(Run(FactorCholesky(Complex{-a.real, a.imaginary}).info), ElementsAre(1, 1));
}

TEST_F(ComplexMatrices, QrOfAnyShape) {
    for (const auto& [rows, columns] : {std::pair{4, 4}, {5, 3}, {3, 5}, {1, 1}}) {
        Reset();
        const Complex x = Some(rows, columns);
        const QrFactors factors = FactorQr(x);
        const Complex q = OrthogonalOf(factors.packed, factors.factors, rows);
        ExpectUnitary(q);
        ExpectSame(Product(q, Part(factors.packed, true)), x);
        ExpectSame(Reflect(factors.packed, factors.factors, x, true), Product(Adjoint(q), x));
        EXPECT_THAT(Run(DiagonalOf(factors.packed.imaginary, std::min(rows, columns))), Each(0));
    }
}

TEST_F(ComplexMatrices, EigenvaluesOfHermitianMatrices) {
    for (const int64_t n : {1, 2, 5, 6}) {
        Reset();
        const Complex x = Some(n, n);
        const Complex a = x + Adjoint(x);
        const Eigen eigen = SymmetricEigen(a);
        ExpectUnitary(eigen.vectors);
        ExpectSame(Product(a, eigen.vectors), Unsqueeze(eigen.values, 1) * eigen.vectors);
        const std::vector<float> values = Run(eigen.values);
        EXPECT_TRUE(std::is_sorted(values.begin(), values.begin() + n));
    }
}

TEST_F(ComplexMatrices, SingularValuesOfAnyShape) {
    for (const auto& [rows, columns] : {std::pair{4, 4}, {5, 3}, {3, 6}, {1, 3}}) {
        for (const bool full : {false, true}) {
            Reset();
            const Complex x = Some(rows, columns);
            const SingularValues svd = FactorSvd(x, true, full);
            ExpectUnitary(svd.left);
            ExpectUnitary(svd.right);
            const Val middle = WithDiagonal(svd.values, {2, svd.left.dim(2), svd.right.dim(2)});
            ExpectSame(Product(Product(svd.left, FromReal<Complex>(middle)), Adjoint(svd.right)),
                       x);
        }
    }
}

// All singular values and eigenvalues are the same, so rounding alone says how columns turn.
TEST_F(ComplexMatrices, UnitaryMatrices) {
    const Complex x = Some(6, 6);
    const QrFactors qr = FactorQr(x);
    const Complex q = OrthogonalOf(qr.packed, qr.factors, 6);
    const SingularValues svd = FactorSvd(q, true, true);
    ExpectUnitary(svd.left);
    ExpectUnitary(svd.right);
    EXPECT_THAT(Run(svd.values), Each(FloatNear(1, 1e-5F)));
    ExpectSame(Product(svd.left, Adjoint(svd.right)), q);
    // Eigenvalues of 1 and -1, three each.
    const Val sign =
        b().Constant(Tensor::FromFloats({1, 1, 6}, std::vector<float>{1, -1, 1, 1, -1, -1}));
    const Complex a = Product(sign * q, Adjoint(q));
    const Eigen eigen = SymmetricEigen(a);
    ExpectUnitary(eigen.vectors);
    ExpectSame(Product(a, eigen.vectors), Unsqueeze(eigen.values, 1) * eigen.vectors);
}

TEST_F(ComplexMatrices, LargeMatricesAreRefusedWithTheirSize) {
    try {
        FactorLu(Some(50, 50), true);
        FAIL();
    } catch (const BuildError& error) {
        EXPECT_THAT(error.what(), HasSubstr("take 20000 bytes at once"));
    }
}

}  // namespace
}  // namespace fornax::graph
