// Factorisations of matrices, and what is solved with them.
//
// All matrices are [batch, rows, columns] of f32 or f64. Each function is a loop over rows, columns
// or rotations, which the scheduler makes one kernel: a workgroup keeps a matrix in its memory. So
// the rows and columns are fixed, and matrices that workgroup memory does not hold are refused.
#pragma once

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

// --- Elimination ---

struct LuFactors {
    Val lu;      // L below the diagonal, where L has ones, and U
    Val pivots;  // i64 [batch, min(rows, columns)]: the row that row k was swapped with
    Val info;    // i64 [batch]: 0, or the number, from 1 on, of the first pivot that is 0
};
// With the greatest pivot of each column, or without swaps.
LuFactors FactorLu(Val a, bool swaps);
// The rows in the order that the swaps of FactorLu() leave them in: i64 [batch, rows].
Val PermutationOf(Val pivots, const Expr& rows);
// Rows in that order; or back, so that row order[i] of the result is row i.
Val PermuteRows(Val x, Val order, bool back);

struct TriangularOptions {
    bool upper = false;
    bool unit = false;  // The diagonal counts as ones.
};
// x with a x = b. The other triangle of `a` is not read.
Val SolveTriangular(Val a, Val b, TriangularOptions options);
// x with a x = b, or with the transposition of `a`.
Val SolveLu(Val lu, Val pivots, Val b, bool transposed);

struct CholeskyFactor {
    Val lower;  // zeros above the diagonal
    Val info;   // i64 [batch]: 0, or the number of the first leading minor that is not positive
};
// Reads the lower triangle of `a`.
CholeskyFactor FactorCholesky(Val a);

// --- Reflections ---

struct QrFactors {
    Val packed;   // R, and below the diagonal the reflections' vectors, which begin with 1
    Val factors;  // [batch, min(rows, columns)]
};
QrFactors FactorQr(Val a);
// Reflections of FactorQr() applied to x: the first one first (transposed Q), or last.
Val Reflect(Val packed, Val factors, Val x, bool first_first);
// The first `columns` columns of Q.
Val OrthogonalOf(Val packed, Val factors, const Expr& columns);

// --- Rotations ---

struct Eigen {
    Val values;   // [batch, n], ascending
    Val vectors;  // [batch, n, n], in columns
};
// `a` is symmetric.
Eigen SymmetricEigen(Val a);

struct SingularValues {
    Val values;  // [batch, k], descending
    Val left;    // [batch, rows, k or rows], nothing without vectors
    Val right;   // [batch, columns, k or columns]
};
SingularValues FactorSvd(Val a, bool vectors, bool full);

}  // namespace fornax::graph
