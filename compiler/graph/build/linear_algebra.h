// Factorisations of matrices, and what is solved with them.
//
// All matrices are [batch, rows, columns] of f32 or f64, or of two such parts: a Number is a Val or
// a Complex. Each function is a loop over rows, columns or rotations, which the scheduler makes one
// kernel: a workgroup keeps a matrix in its memory. So the rows and columns are fixed, and matrices
// that workgroup memory does not hold are refused.
#pragma once

#include "compiler/graph/build/complex.h"

namespace fornax::graph {

// --- Elimination ---

template <RealOrComplex Number>
struct LuFactors {
    Number lu;   // L below the diagonal, where L has ones, and U
    Val pivots;  // i64 [batch, min(rows, columns)]: the row that row k was swapped with
    Val info;    // i64 [batch]: 0, or the number, from 1 on, of the first pivot that is 0
};
// With the greatest pivot of each column as LAPACK measures them, or without swaps.
template <RealOrComplex Number>
LuFactors<Number> FactorLu(const Number& a, bool swaps);
// The rows in the order that the swaps of FactorLu() leave them in: i64 [batch, rows].
Val PermutationOf(Val pivots, const Expr& rows);
// Rows in that order; or back, so that row order[i] of the result is row i.
template <RealOrComplex Number>
Number PermuteRows(const Number& x, Val order, bool back);

struct TriangularOptions {
    bool upper = false;
    bool unit = false;  // The diagonal counts as ones.
};
// x with a x = b. The other triangle of `a` is not read.
template <RealOrComplex Number>
Number SolveTriangular(const Number& a, const Number& b, TriangularOptions options);
// x with a x = b, or with the transposition of `a`.
template <RealOrComplex Number>
Number SolveLu(const Number& lu, Val pivots, const Number& b, bool transposed);

template <RealOrComplex Number>
struct CholeskyFactor {
    Number lower;  // zeros above the diagonal
    Val info;      // i64 [batch]: 0, or the number of the first leading minor that is not positive
};
// Reads the lower triangle of `a`, and of its diagonal the real parts.
template <RealOrComplex Number>
CholeskyFactor<Number> FactorCholesky(const Number& a);

// --- Reflections ---

template <RealOrComplex Number>
struct QrFactors {
    Number packed;   // R, and below the diagonal the reflections' vectors, which begin with 1
    Number factors;  // [batch, min(rows, columns)]
};
// The diagonal of R is real.
template <RealOrComplex Number>
QrFactors<Number> FactorQr(const Number& a);
// Reflections of FactorQr() applied to x: the first one first (the adjoint of Q), or last.
template <RealOrComplex Number>
Number Reflect(const Number& packed, const Number& factors, const Number& x, bool first_first);
// The first `columns` columns of Q.
template <RealOrComplex Number>
Number OrthogonalOf(const Number& packed, const Number& factors, const Expr& columns);

// --- Rotations ---

template <RealOrComplex Number>
struct Eigen {
    Val values;      // [batch, n], ascending
    Number vectors;  // [batch, n, n], in columns
};
// `a` is symmetric, or Hermitian.
template <RealOrComplex Number>
Eigen<Number> SymmetricEigen(const Number& a);

template <RealOrComplex Number>
struct SingularValues {
    Val values;    // [batch, k], descending
    Number left;   // [batch, rows, k or rows], nothing without vectors
    Number right;  // [batch, columns, k or columns]
};
template <RealOrComplex Number>
SingularValues<Number> FactorSvd(const Number& a, bool vectors, bool full);

}  // namespace fornax::graph
