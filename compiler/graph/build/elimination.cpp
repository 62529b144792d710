// Factorisations by elimination, and triangular systems.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/build/index.h"
#include "compiler/graph/build/linear_algebra.h"
#include "compiler/graph/build/matrix_loops.h"

namespace fornax::graph {

void RequireFits(std::initializer_list<Val> carried) {
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
        const Val& first = *carried.begin();
        FailUnsupported(fmt::format(
            "its matrices {} take {} bytes at once; those that are factorised take at most {}",
            first.shape().ToString(), bytes, kMaxBytes));
    }
}

bool IsEmpty(Val x) {
    return x.builder().sizes().Equal(x.shape().Volume(), 0);
}

Val RowNumbers(Builder& b, const Shape& shape) {
    return b.Iota(ElementType::kI64, shape, 1);
}

Val ColumnNumbers(Builder& b, const Shape& shape) {
    return b.Iota(ElementType::kI64, shape, 2);
}

Val ElementAt(Val x, Val row, Val column) {
    return Gather(x, {0, -1, -2}, {row, column}, {x.dim(0), 1});
}

Val Identity(Builder& b, ElementType type, const Shape& shape) {
    return Cast(map::Equal(RowNumbers(b, shape), ColumnNumbers(b, shape)), type);
}

namespace {

// What a loop over the columns of a matrix has of column k.
struct Step {
    Step(Builder& b, Val k, Val x)
        : row(RowNumbers(b, x.shape())),
          column(ColumnNumbers(b, x.shape())),
          below(map::Less(k, row)),
          right(map::Less(k, column)) {}

    Val row, column;   // numbers
    Val below, right;  // of k
};

}  // namespace

LuFactors FactorLu(Val a, bool swaps) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0), rows = a.dim(1), columns = a.dim(2);
    const int64_t count = std::min(b.sizes().Fix(rows), b.sizes().Fix(columns));
    const Val pivots = b.Full(ElementType::kI64, {batch, count}, 0);
    const Val info = b.Full(ElementType::kI64, {batch, 1}, 0);
    if (IsEmpty(a)) {
        return {a, pivots, Squeeze(info, 1)};
    }
    RequireFits({a});
    const Vals results =
        b.Loop(b.Integer(ElementType::kI64, count), {a, pivots, info}, {},
               [&](Builder& body, Vals v) -> Vals {
                   const Val k = v[0], x = v[1];
                   const Val row = body.Iota(ElementType::kI64, {batch, rows}, 1);
                   Val pivot = BroadcastTo(Reshape(k, {1, 1}), {batch, 1});
                   if (swaps) {
                       const Val size = map::Abs(TakeOne(x, k, 2));
                       pivot = ArgReduce(Combine::kMax,
                                         Where(map::Less(row, k), Like(size, -1), size), 1, true);
                   }
                   const Val source =
                       Where(map::Equal(row, k), pivot, Where(map::Equal(row, pivot), k, row));
                   const Val swapped = Gather(x, {0, -1, 2}, {Unsqueeze(source, 2)}, x.shape());
                   const Val corner = ElementAt(x, pivot, k);
                   const Val head = Gather(x, {0, -1, 1}, {pivot}, {batch, columns});
                   const Val safe = Where(Equal(corner, 0), Like(corner, 1), corner);
                   const Val factor = Unsqueeze(TakeOne(swapped, k, 2) / safe, 2);
                   const Step step(body, k, x);
                   const Val rest = swapped - factor * Unsqueeze(head, 1);
                   const Val beside = Where(map::Equal(step.column, k), factor, swapped);
                   const Val next = Where(step.below, Where(step.right, rest, beside), swapped);
                   const Val number = body.Iota(ElementType::kI64, {batch, count}, 1);
                   const Val is_first = And(Equal(corner, 0), Equal(v[3], 0));
                   return {next, Where(map::Equal(number, k), pivot, v[2]),
                           Where(is_first, k + 1.0, v[3])};
               });
    return {results[0], results[1], Squeeze(results[2], 1)};
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

Val PermuteRows(Val x, Val order, bool back) {
    if (!back) {
        return Gather(x, {0, -1, 2}, {Unsqueeze(order, 2)}, x.shape());
    }
    return Scatter(x, x, {0, -1, 2}, {Unsqueeze(order, 2)});
}

Val SolveTriangular(Val a, Val b, TriangularOptions options) {
    Builder& builder = a.builder();
    const Expr batch = b.dim(0), rows = b.dim(1), columns = b.dim(2);
    if (IsEmpty(b)) {
        return b;
    }
    RequireFits({b});
    const int64_t count = builder.sizes().Fix(rows);
    const Val zeros = builder.Full(b.element(), b.shape(), 0);
    return builder.Loop(
        builder.Integer(ElementType::kI64, count), {zeros}, {a, b},
        [&](Builder& body, Vals v) -> Vals {
            const Val x = v[1], matrix = v[2], right = v[3];
            const Val i = options.upper ? body.Integer(ElementType::kI64, count - 1) - v[0] : v[0];
            // Rows that are not solved yet are zeros, whatever their factors are.
            const Val number = body.Iota(ElementType::kI64, {batch, rows}, 1);
            const Val solved = options.upper ? map::Less(i, number) : map::Less(number, i);
            const Val row = TakeOne(matrix, i, 1);
            const Val factors = Where(solved, row, Like(row, 0));
            const Val sum = Reduce(Combine::kSum, Unsqueeze(factors, 2) * x, {1}, false);
            Val value = TakeOne(right, i, 1) - sum;
            if (!options.unit) {
                value = value / ElementAt(matrix, i, i);
            }
            return {Where(map::Equal(RowNumbers(body, x.shape()), i), Unsqueeze(value, 1), x)};
        })[0];
}

Val SolveLu(Val lu, Val pivots, Val b, bool transposed) {
    const Val order = PermutationOf(pivots, lu.dim(1));
    if (transposed) {
        const Val t = TransposeMatrix(lu);
        const Val y = SolveTriangular(t, b, {.upper = false, .unit = false});
        return PermuteRows(SolveTriangular(t, y, {.upper = true, .unit = true}), order, true);
    }
    const Val y = SolveTriangular(lu, PermuteRows(b, order, false), {.upper = false, .unit = true});
    return SolveTriangular(lu, y, {.upper = true, .unit = false});
}

CholeskyFactor FactorCholesky(Val a) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0), rows = a.dim(1);
    const Val info = b.Full(ElementType::kI64, {batch, 1}, 0);
    if (IsEmpty(a)) {
        return {a, Squeeze(info, 1)};
    }
    RequireFits({a});
    const Vals results =
        b.Loop(b.Integer(ElementType::kI64, b.sizes().Fix(rows)), {a, info}, {},
               [&](Builder& body, Vals v) -> Vals {
                   const Val k = v[0], x = v[1];
                   const Val square = ElementAt(x, k, k);
                   const Val corner = map::Sqrt(square);
                   const Val scaled = TakeOne(x, k, 2) / corner;
                   const Step step(body, k, x);
                   const Val rest = x - Unsqueeze(scaled, 2) * Unsqueeze(scaled, 1);
                   const Val beside = Where(map::Equal(step.column, k), Unsqueeze(scaled, 2), x);
                   const Val is_corner = And(map::Equal(step.column, k), map::Equal(step.row, k));
                   const Val next = Where(is_corner, Unsqueeze(corner, 2),
                                          Where(step.below, Where(step.right, rest, beside), x));
                   const Val fails = And(Not(Greater(square, 0)), Equal(v[2], 0));
                   return {next, Where(fails, k + 1.0, v[2])};
               });
    const Val x = results[0];
    const Val lower = map::LessEqual(ColumnNumbers(b, x.shape()), RowNumbers(b, x.shape()));
    return {Where(lower, x, Like(x, 0)), Squeeze(results[1], 1)};
}

}  // namespace fornax::graph
