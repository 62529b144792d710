// Factorisations by elimination, and triangular systems.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "compiler/graph/build/index.h"
#include "compiler/graph/build/linear_algebra.h"
#include "compiler/graph/build/matrix_loops.h"

namespace fornax::graph {

void RequireFits(const Vals& carried) {
    // Workgroup memory less what an iteration keeps beside its matrices, of which it has two
    // copies.
    constexpr int64_t kMaxBytes = 14 << 10;
    int64_t bytes = 0;
    for (const Val& v : carried) {
        const int64_t rows = v.builder().sizes().Fix(v.dim(1));
        const int64_t columns = v.builder().sizes().Fix(v.dim(2));
        bytes += rows * columns * static_cast<int64_t>(BytesOf(v.element()));
    }
    if (bytes > kMaxBytes) {
        const Val& first = carried.front();
        FailUnsupported(fmt::format(
            "its matrices {} take {} bytes at once; those that are factorised take at most {}",
            first.shape().ToString(), bytes, kMaxBytes));
    }
}

Val RowNumbers(Builder& b, const Shape& shape) {
    return b.Iota(ElementType::kI64, shape, 1);
}

Val ColumnNumbers(Builder& b, const Shape& shape) {
    return b.Iota(ElementType::kI64, shape, 2);
}

namespace {

// What a loop over the columns of a matrix has of column k.
struct Step {
    Step(Builder& b, Val k, const Shape& shape)
        : row(RowNumbers(b, shape)),
          column(ColumnNumbers(b, shape)),
          below(map::Less(k, row)),
          right(map::Less(k, column)) {}

    Val row, column;   // numbers
    Val below, right;  // of k
};

}  // namespace

template <RealOrComplex Number>
LuFactors<Number> FactorLu(const Number& a, bool swaps) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0), rows = a.dim(1), columns = a.dim(2);
    const int64_t count = std::min(b.sizes().Fix(rows), b.sizes().Fix(columns));
    const Val pivots = b.Full(ElementType::kI64, {batch, count}, 0);
    const Val info = b.Full(ElementType::kI64, {batch, 1}, 0);
    if (IsEmpty(a)) {
        return {a, pivots, Squeeze(info, 1)};
    }
    RequireFits(Pack(a));
    Unpacked results(
        b.Loop(b.Integer(ElementType::kI64, count), Pack(a, pivots, info), {},
               [&](Builder& body, Vals v) -> Vals {
                   Unpacked given(std::move(v));
                   const Val k = given.Next<Val>();
                   const Number x = given.Next<Number>();
                   const Val chosen = given.Next<Val>(), failed = given.Next<Val>();
                   const Val row = body.Iota(ElementType::kI64, {batch, rows}, 1);
                   Val pivot = BroadcastTo(Reshape(k, {1, 1}), {batch, 1});
                   if (swaps) {
                       const Val size = PivotSize(TakeOne(x, k, 2));
                       pivot = ArgReduce(Combine::kMax,
                                         Where(map::Less(row, k), Like(size, -1), size), 1, true);
                   }
                   const Val source =
                       Where(map::Equal(row, k), pivot, Where(map::Equal(row, pivot), k, row));
                   const Number swapped = Gather(x, {0, -1, 2}, {Unsqueeze(source, 2)}, x.shape());
                   const Number corner = ElementAt(x, pivot, k);
                   const Number head = Gather(x, {0, -1, 1}, {pivot}, {batch, columns});
                   const Number safe = Where(IsZero(corner), Like(corner, 1), corner);
                   const Number factor = Unsqueeze(TakeOne(swapped, k, 2) / safe, 2);
                   const Step step(body, k, x.shape());
                   const Number rest = swapped - factor * Unsqueeze(head, 1);
                   const Number beside = Where(map::Equal(step.column, k), factor, swapped);
                   const Number next = Where(step.below, Where(step.right, rest, beside), swapped);
                   const Val number = body.Iota(ElementType::kI64, {batch, count}, 1);
                   const Val is_first = And(IsZero(corner), Equal(failed, 0));
                   return Pack(next, Where(map::Equal(number, k), pivot, chosen),
                               Where(is_first, k + 1.0, failed));
               }));
    const Number lu = results.Next<Number>();
    const Val chosen = results.Next<Val>();
    return {lu, chosen, Squeeze(results.Next<Val>(), 1)};
}

Val PermutationOf(Val pivots, const Expr& rows) {
    Builder& b = pivots.builder();
    const Expr batch = pivots.dim(0);
    const int64_t count = b.sizes().Fix(pivots.dim(1));
    const Val start = b.Iota(ElementType::kI64, {batch, rows}, 1);
    if (count == 0 || IsEmpty(start)) {
        return start;
    }
    return b.Loop(b.Integer(ElementType::kI64, count), {start}, {pivots},
                  [&](Builder& body, Vals v) -> Vals {
                      const Val k = v[0], order = v[1];
                      const Val pivot = Unsqueeze(TakeOne(v[2], k, 1), 1);
                      const Val row = body.Iota(ElementType::kI64, {batch, rows}, 1);
                      const Val source =
                          Where(map::Equal(row, k), pivot, Where(map::Equal(row, pivot), k, row));
                      return {Gather(order, {0, -1}, {source}, order.shape())};
                  })[0];
}

template <RealOrComplex Number>
Number PermuteRows(const Number& x, Val order, bool back) {
    const Val index = Unsqueeze(order, 2);
    return Each(x, [&](Val part) {
        return back ? Scatter(part, part, {0, -1, 2}, {index})
                    : Gather(part, {0, -1, 2}, {index}, part.shape());
    });
}

template <RealOrComplex Number>
Number SolveTriangular(const Number& a, const Number& b, TriangularOptions options) {
    Builder& builder = a.builder();
    const Expr batch = b.dim(0), rows = b.dim(1), columns = b.dim(2);
    if (IsEmpty(b)) {
        return b;
    }
    RequireFits(Pack(b));
    const int64_t count = builder.sizes().Fix(rows);
    const Number zeros = Zeros<Number>(builder, b.element(), b.shape());
    Unpacked results(builder.Loop(
        builder.Integer(ElementType::kI64, count), Pack(zeros), Pack(a, b),
        [&](Builder& body, Vals v) -> Vals {
            Unpacked given(std::move(v));
            const Val iteration = given.Next<Val>();
            const Number x = given.Next<Number>();
            const Number matrix = given.Next<Number>(), right = given.Next<Number>();
            const Val i =
                options.upper ? body.Integer(ElementType::kI64, count - 1) - iteration : iteration;
            // Rows that are not solved yet are zeros, whatever their factors are.
            const Val number = body.Iota(ElementType::kI64, {batch, rows}, 1);
            const Val solved = options.upper ? map::Less(i, number) : map::Less(number, i);
            const Number row = TakeOne(matrix, i, 1);
            const Number factors = Where(solved, row, Like(row, 0));
            const Number sum = SumAlong(Unsqueeze(factors, 2) * x, 1, false);
            Number value = TakeOne(right, i, 1) - sum;
            if (!options.unit) {
                value = value / ElementAt(matrix, i, i);
            }
            return Pack(Where(map::Equal(RowNumbers(body, x.shape()), i), Unsqueeze(value, 1), x));
        }));
    return results.Next<Number>();
}

template <RealOrComplex Number>
Number SolveLu(const Number& lu, Val pivots, const Number& b, bool transposed) {
    const Val order = PermutationOf(pivots, lu.dim(1));
    if (transposed) {
        const Number t = TransposeMatrix(lu);
        const Number y = SolveTriangular(t, b, {.upper = false, .unit = false});
        return PermuteRows(SolveTriangular(t, y, {.upper = true, .unit = true}), order, true);
    }
    const Number y =
        SolveTriangular(lu, PermuteRows(b, order, false), {.upper = false, .unit = true});
    return SolveTriangular(lu, y, {.upper = true, .unit = false});
}

template <RealOrComplex Number>
CholeskyFactor<Number> FactorCholesky(const Number& a) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0), rows = a.dim(1);
    const Val info = b.Full(ElementType::kI64, {batch, 1}, 0);
    if (IsEmpty(a)) {
        return {a, Squeeze(info, 1)};
    }
    RequireFits(Pack(a));
    Unpacked results(
        b.Loop(b.Integer(ElementType::kI64, b.sizes().Fix(rows)), Pack(a, info), {},
               [&](Builder& body, Vals v) -> Vals {
                   Unpacked given(std::move(v));
                   const Val k = given.Next<Val>();
                   const Number x = given.Next<Number>();
                   const Val failed = given.Next<Val>();
                   const Val square = RealPart(ElementAt(x, k, k));
                   const Val corner = map::Sqrt(square);
                   const Number scaled = TakeOne(x, k, 2) / corner;
                   const Step step(body, k, x.shape());
                   const Number rest = x - Unsqueeze(scaled, 2) * Unsqueeze(Conjugate(scaled), 1);
                   const Number beside = Where(map::Equal(step.column, k), Unsqueeze(scaled, 2), x);
                   const Val is_corner = And(map::Equal(step.column, k), map::Equal(step.row, k));
                   const Number next = Where(is_corner, FromReal<Number>(Unsqueeze(corner, 2)),
                                             Where(step.below, Where(step.right, rest, beside), x));
                   const Val fails = And(Not(Greater(square, 0)), Equal(failed, 0));
                   return Pack(next, Where(fails, k + 1.0, failed));
               }));
    const Number x = results.Next<Number>();
    const Val lower = map::LessEqual(ColumnNumbers(b, x.shape()), RowNumbers(b, x.shape()));
    return {Where(lower, x, Like(x, 0)), Squeeze(results.Next<Val>(), 1)};
}

template LuFactors<Val> FactorLu(const Val&, bool);
template LuFactors<Complex> FactorLu(const Complex&, bool);
template Val PermuteRows(const Val&, Val, bool);
template Complex PermuteRows(const Complex&, Val, bool);
template Val SolveTriangular(const Val&, const Val&, TriangularOptions);
template Complex SolveTriangular(const Complex&, const Complex&, TriangularOptions);
template Val SolveLu(const Val&, Val, const Val&, bool);
template Complex SolveLu(const Complex&, Val, const Complex&, bool);
template CholeskyFactor<Val> FactorCholesky(const Val&);
template CholeskyFactor<Complex> FactorCholesky(const Complex&);

}  // namespace fornax::graph
