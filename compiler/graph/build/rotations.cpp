// Eigenvalues and singular values by Jacobi's rotations.
//
// In each iteration every column is rotated with the one in the mirrored place, and then all but
// the first move on by one place, as in a tournament of chess: so n - 1 iterations are a sweep, in
// which all pairs meet once, and all iterations are alike.
#include <limits>

#include "compiler/graph/build/index.h"
#include "compiler/graph/build/linear_algebra.h"
#include "compiler/graph/build/matrix_loops.h"

namespace fornax::graph {
namespace {

// Convergence is quadratic: f32 is exact after 6 or 7 of matrices this small.
int64_t SweepsOf(ElementType type) {
    return type == ElementType::kF64 ? 14 : 10;
}

// [.., i, ..] of the mirrored place.
Val Mirrored(Val x, int64_t axis) {
    return Reverse(x, axis);
}

struct Rotation {
    Val cosine, sine;  // x[i] becomes cosine[i] x[i] - sine[i] x[mirrored i]
};

// The rotations that make `mixed` of each two places zero, where `own` are what these places have
// beside it; along the last axis of n places.
Rotation RotationOf(Builder& b, Val own, Val other, Val mixed, int64_t n) {
    const Val zero = Like(own, 0), one = Like(own, 1);
    const Val none = Equal(mixed, 0);
    const Val tau = (other - own) / Where(none, one, mixed * 2.0);
    // Two mirrored places rotate by opposite angles, also where both have the same.
    const Val place = b.Iota(ElementType::kI64, own.shape(), own.rank() - 1);
    const Val first = map::Less(place, b.Integer(ElementType::kI64, n / 2));
    const Val positive = Or(Greater(tau, 0), And(Equal(tau, 0), first));
    const Val size = one / (map::Abs(tau) + map::Sqrt(tau * tau + 1.0));
    const Val tangent = Where(none, zero, Where(positive, size, -size));
    const Val cosine = one / map::Sqrt(tangent * tangent + 1.0);
    return {cosine, cosine * tangent};
}

// What a place gets when all have moved on.
Val Order(Builder& b, const Shape& shape, int64_t axis, int64_t n) {
    const Val place = b.Iota(ElementType::kI64, shape, axis);
    return Where(LessEqual(place, 1), place * static_cast<double>(n - 1), place - 1.0);
}

Val MoveColumns(Builder& b, Val x, int64_t n) {
    return Gather(x, {0, 1, -1}, {Order(b, x.shape(), 2, n)}, x.shape());
}

Val RotateColumns(Val x, const Rotation& by) {
    return by.cosine * x - by.sine * Mirrored(x, 2);
}

Val WithSpareColumn(Val x, int64_t n, int64_t even, bool rows) {
    return Pad(x, 0, {0, 0, 0}, {0, rows ? even - n : 0, even - n});
}

// Columns in the order of sorted keys.
Val ColumnsAt(Val x, Val positions) {
    return Gather(x, {0, 1, -1}, {Unsqueeze(positions, 1)}, {x.dim(0), x.dim(1), positions.dim(1)});
}

}  // namespace

Eigen SymmetricEigen(Val a) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0);
    const int64_t n = b.sizes().Fix(a.dim(1)), even = n + n % 2;
    const ElementType type = a.element();
    if (IsEmpty(a)) {
        return {b.Full(type, {batch, n}, 0), a};
    }
    const Val start = WithSpareColumn(a, n, even, true);
    const Shape shape{batch, even, even};
    const Val identity = Identity(b, type, shape);
    RequireFits({start, identity});
    const Vals results = b.Loop(
        b.Integer(ElementType::kI64, (even - 1) * SweepsOf(type)), {start, identity}, {},
        [&](Builder& body, Vals v) -> Vals {
            const Val x = v[1];
            // The number of a column in a mirrored place is counted from the end.
            const Val place = body.Iota(ElementType::kI64, {batch, even}, 1);
            const Val mirror = body.Integer(ElementType::kI64, even - 1) - place;
            const Shape row{batch, even};
            const auto at = [&](Val i, Val j) { return Gather(x, {0, -1, -2}, {i, j}, row); };
            // Both places of a pair read one element: what rounding left of two would make
            // rotations that are not opposite where the rest is the same.
            const Val first = map::Less(place, mirror);
            const Val mixed = at(Where(first, place, mirror), Where(first, mirror, place));
            const Rotation by = RotationOf(body, at(place, place), at(mirror, mirror), mixed, even);
            const Rotation columns{Unsqueeze(by.cosine, 1), Unsqueeze(by.sine, 1)};
            const Val rows = Unsqueeze(by.cosine, 2) * x - Unsqueeze(by.sine, 2) * Mirrored(x, 1);
            const Val rotated = RotateColumns(rows, columns);
            const Val next =
                Gather(rotated, {0, -1, -2},
                       {Order(body, shape, 1, even), Order(body, shape, 2, even)}, shape);
            return {next, MoveColumns(body, RotateColumns(v[2], columns), even)};
        });
    const Val place = b.Iota(ElementType::kI64, {batch, even}, 1);
    Val values = Gather(results[0], {0, -1, -2}, {place, place}, {batch, even});
    if (even != n) {
        // The spare column is the last one.
        const Val spare = Not(Equal(TakeOne(results[1], b.Integer(ElementType::kI64, n), 1), 0));
        values = Where(spare, Like(values, std::numeric_limits<double>::infinity()), values);
    }
    const Sorted sorted = Sort(values, 1, false, n);
    return {sorted.values, ColumnsAt(SliceAxis(results[1], 1, 0, n), sorted.positions)};
}

namespace {

// The matrices have at least as many rows as columns.
SingularValues FactorTall(Val a, bool vectors, bool full) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0), rows = a.dim(1);
    const int64_t n = b.sizes().Fix(a.dim(2)), even = n + n % 2;
    const ElementType type = a.element();
    const Val start = WithSpareColumn(a, n, even, false);
    const Val identity = Identity(b, type, {batch, even, even});
    RequireFits({start, identity});
    const Vals results =
        b.Loop(b.Integer(ElementType::kI64, (even - 1) * SweepsOf(type)), {start, identity}, {},
               [&](Builder& body, Vals v) -> Vals {
                   const Val x = v[1];
                   const Val square = Reduce(Combine::kSum, x * x, {1}, true);
                   const Val mixed = Reduce(Combine::kSum, x * Mirrored(x, 2), {1}, true);
                   const Rotation by = RotationOf(body, square, Mirrored(square, 2), mixed, even);
                   return {MoveColumns(body, RotateColumns(x, by), even),
                           MoveColumns(body, RotateColumns(v[2], by), even)};
               });
    const Val x = results[0];
    Val keys = map::Sqrt(Reduce(Combine::kSum, x * x, {1}, false));
    if (even != n) {
        const Val spare = Not(Equal(TakeOne(results[1], b.Integer(ElementType::kI64, n), 1), 0));
        keys = Where(spare, Like(keys, -1), keys);
    }
    const Sorted sorted = Sort(keys, 1, true, n);
    SingularValues result{sorted.values, {}, {}};
    if (vectors) {
        // Columns that are zero get what is orthogonal to the others.
        const QrFactors qr = FactorQr(ColumnsAt(x, sorted.positions));
        const Val q = OrthogonalOf(qr.packed, qr.factors, full ? rows : Expr(n));
        const Shape shape = q.shape();
        const Val column = b.Iota(ElementType::kI64, {batch, shape[2]}, 1);
        const Val last = b.Integer(ElementType::kI64, n - 1);
        const Val place = map::Min(column, last);
        const Val corner = Gather(qr.packed, {0, -1, -2}, {place, place}, {batch, shape[2]});
        result.left = q * Unsqueeze(Where(Less(corner, 0), Like(corner, -1), Like(corner, 1)), 1);
        result.right = ColumnsAt(SliceAxis(results[1], 1, 0, n), sorted.positions);
    }
    return result;
}

}  // namespace

SingularValues FactorSvd(Val a, bool vectors, bool full) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0);
    const int64_t rows = b.sizes().Fix(a.dim(1)), columns = b.sizes().Fix(a.dim(2));
    if (IsEmpty(a)) {
        const int64_t count = std::min(rows, columns);
        const auto identity = [&](int64_t size) {
            return Identity(b, a.element(), {batch, size, full ? size : count});
        };
        return {b.Full(a.element(), {batch, count}, 0), vectors ? identity(rows) : Val(),
                vectors ? identity(columns) : Val()};
    }
    if (rows >= columns) {
        return FactorTall(a, vectors, full);
    }
    SingularValues result = FactorTall(TransposeMatrix(a), vectors, full);
    std::swap(result.left, result.right);
    return result;
}

}  // namespace fornax::graph
