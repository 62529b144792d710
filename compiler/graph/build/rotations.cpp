// Eigenvalues and singular values by Jacobi's rotations.
//
// In each iteration every column is rotated with the one in the mirrored place, and then all but
// the first move on by one place, as in a tournament of chess: so n - 1 iterations are a sweep, in
// which all pairs meet once, and all iterations are alike. Of complex numbers the column in the
// mirrored place is turned first, so that the product of both is real.
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
template <RealOrComplex Number>
Number Mirrored(const Number& x, int64_t axis) {
    return Each(x, [&](Val part) { return Reverse(part, axis); });
}

template <RealOrComplex Number>
struct Rotation {
    Val cosine;
    Number sine;  // x[i] becomes cosine[i] x[i] - sine[i] x[mirrored i]
};

// Whether a place along the last axis of n is in the first half.
Val IsFirst(Builder& b, const Shape& shape, int64_t n) {
    const Val place = b.Iota(ElementType::kI64, shape, static_cast<int64_t>(shape.rank()) - 1);
    return map::Less(place, b.Integer(ElementType::kI64, n / 2));
}

// The rotations that make `mixed` of each two places zero, where `own` are what these places have
// beside it; along the last axis of n places. What is mixed of two places must be each other's
// conjugate to the last bit: where both have the same beside it, that alone says how they rotate.
Rotation<Val> RotationOf(Builder& b, Val own, Val other, Val mixed, int64_t n) {
    const Val zero = Like(own, 0), one = Like(own, 1);
    const Val none = Equal(mixed, 0);
    const Val tau = (other - own) / Where(none, one, mixed * 2.0);
    // Two mirrored places rotate by opposite angles, also where both have the same.
    const Val first = IsFirst(b, own.shape(), n);
    const Val positive = Or(Greater(tau, 0), And(Equal(tau, 0), first));
    const Val size = one / (map::Abs(tau) + map::Sqrt(tau * tau + 1.0));
    const Val tangent = Where(none, zero, Where(positive, size, -size));
    const Val cosine = one / map::Sqrt(tangent * tangent + 1.0);
    return {cosine, cosine * tangent};
}

Rotation<Complex> RotationOf(Builder& b, Val own, Val other, const Complex& mixed, int64_t n) {
    const Val size = Size(mixed);
    const Rotation<Val> turned = RotationOf(b, own, other, size, n);
    const Complex direction = Conjugate(mixed) / Where(Equal(size, 0), Like(size, 1), size);
    return {turned.cosine, turned.sine * direction};
}

// What a place gets when all have moved on.
Val Order(Builder& b, const Shape& shape, int64_t axis, int64_t n) {
    const Val place = b.Iota(ElementType::kI64, shape, axis);
    return Where(LessEqual(place, 1), place * static_cast<double>(n - 1), place - 1.0);
}

template <RealOrComplex Number>
Number MoveColumns(Builder& b, const Number& x, int64_t n) {
    return Gather(x, {0, 1, -1}, {Order(b, x.shape(), 2, n)}, x.shape());
}

template <RealOrComplex Number>
Number RotateColumns(const Number& x, const Rotation<Number>& by) {
    return by.cosine * x - by.sine * Mirrored(x, 2);
}

template <RealOrComplex Number>
Number WithSpareColumn(const Number& x, int64_t n, int64_t even, bool rows) {
    return Each(
        x, [&](Val part) { return Pad(part, 0, {0, 0, 0}, {0, rows ? even - n : 0, even - n}); });
}

// Columns in the order of sorted keys.
template <RealOrComplex Number>
Number ColumnsAt(const Number& x, Val positions) {
    return Gather(x, {0, 1, -1}, {Unsqueeze(positions, 1)}, {x.dim(0), x.dim(1), positions.dim(1)});
}

}  // namespace

template <RealOrComplex Number>
Eigen<Number> SymmetricEigen(const Number& a) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0);
    const int64_t n = b.sizes().Fix(a.dim(1)), even = n + n % 2;
    const ElementType type = a.element();
    if (IsEmpty(a)) {
        return {b.Full(type, {batch, n}, 0), a};
    }
    const Number start = WithSpareColumn(a, n, even, true);
    const Shape shape{batch, even, even};
    const Number identity = Identity<Number>(b, type, shape);
    RequireFits(Pack(start, identity));
    Unpacked results(b.Loop(
        b.Integer(ElementType::kI64, (even - 1) * SweepsOf(type)), Pack(start, identity), {},
        [&](Builder& body, Vals v) -> Vals {
            Unpacked given(std::move(v));
            given.Next<Val>();
            const Number x = given.Next<Number>(), vectors = given.Next<Number>();
            // The number of a column in a mirrored place is counted from the end.
            const Val place = body.Iota(ElementType::kI64, {batch, even}, 1);
            const Val mirror = body.Integer(ElementType::kI64, even - 1) - place;
            const Shape row{batch, even};
            const auto at = [&](Val i, Val j) { return Gather(x, {0, -1, -2}, {i, j}, row); };
            // Both places of a pair read one element, since rounding makes two elements differ.
            const Val first = IsFirst(body, row, even);
            const Number mixed = ConjugateWhere(
                Not(first), at(Where(first, place, mirror), Where(first, mirror, place)));
            const Rotation<Number> by = RotationOf(body, RealPart(at(place, place)),
                                                   RealPart(at(mirror, mirror)), mixed, even);
            const Rotation<Number> columns{Unsqueeze(by.cosine, 1), Unsqueeze(by.sine, 1)};
            const Number rows =
                Unsqueeze(by.cosine, 2) * x - Unsqueeze(Conjugate(by.sine), 2) * Mirrored(x, 1);
            const Number rotated = RotateColumns(rows, columns);
            const Number next =
                Gather(rotated, {0, -1, -2},
                       {Order(body, shape, 1, even), Order(body, shape, 2, even)}, shape);
            return Pack(next, MoveColumns(body, RotateColumns(vectors, columns), even));
        }));
    const Number rotated = results.Next<Number>(), vectors = results.Next<Number>();
    const Val place = b.Iota(ElementType::kI64, {batch, even}, 1);
    Val values = Gather(RealPart(rotated), {0, -1, -2}, {place, place}, {batch, even});
    if (even != n) {
        // The spare column is the last one.
        const Val spare = Not(IsZero(TakeOne(vectors, b.Integer(ElementType::kI64, n), 1)));
        values = Where(spare, Like(values, std::numeric_limits<double>::infinity()), values);
    }
    const Sorted sorted = Sort(values, 1, false, n);
    return {sorted.values, ColumnsAt(SliceAxis(vectors, 1, 0, n), sorted.positions)};
}

namespace {

// The matrices have at least as many rows as columns.
template <RealOrComplex Number>
SingularValues<Number> FactorTall(const Number& a, bool vectors, bool full) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0), rows = a.dim(1);
    const int64_t n = b.sizes().Fix(a.dim(2)), even = n + n % 2;
    const ElementType type = a.element();
    const Number start = WithSpareColumn(a, n, even, false);
    const Number identity = Identity<Number>(b, type, {batch, even, even});
    RequireFits(Pack(start, identity));
    Unpacked results(b.Loop(
        b.Integer(ElementType::kI64, (even - 1) * SweepsOf(type)), Pack(start, identity), {},
        [&](Builder& body, Vals v) -> Vals {
            Unpacked given(std::move(v));
            given.Next<Val>();
            const Number x = given.Next<Number>(), turned = given.Next<Number>();
            const Val square = Reduce(Combine::kSum, SquaredSize(x), {1}, true);
            const Number product = SumAlong(Conjugate(x) * Mirrored(x, 2), 1, true);
            const Val first = IsFirst(body, square.shape(), even);
            const Number mixed = Where(first, product, Conjugate(Mirrored(product, 2)));
            const Rotation<Number> by = RotationOf(body, square, Mirrored(square, 2), mixed, even);
            return Pack(MoveColumns(body, RotateColumns(x, by), even),
                        MoveColumns(body, RotateColumns(turned, by), even));
        }));
    const Number x = results.Next<Number>(), right = results.Next<Number>();
    Val keys = map::Sqrt(Reduce(Combine::kSum, SquaredSize(x), {1}, false));
    if (even != n) {
        const Val spare = Not(IsZero(TakeOne(right, b.Integer(ElementType::kI64, n), 1)));
        keys = Where(spare, Like(keys, -1), keys);
    }
    const Sorted sorted = Sort(keys, 1, true, n);
    SingularValues<Number> result{sorted.values, {}, {}};
    if (vectors) {
        // Columns that are zero get what is orthogonal to the others.
        const QrFactors<Number> qr = FactorQr(ColumnsAt(x, sorted.positions));
        const Number q = OrthogonalOf(qr.packed, qr.factors, full ? rows : Expr(n));
        const Shape shape = q.shape();
        const Val column = b.Iota(ElementType::kI64, {batch, shape[2]}, 1);
        const Val last = b.Integer(ElementType::kI64, n - 1);
        const Val place = map::Min(column, last);
        const Val corner =
            Gather(RealPart(qr.packed), {0, -1, -2}, {place, place}, {batch, shape[2]});
        const Val sign = Where(Less(corner, 0), Like(corner, -1), Like(corner, 1));
        result.left = Unsqueeze(sign, 1) * q;
        result.right = ColumnsAt(SliceAxis(right, 1, 0, n), sorted.positions);
    }
    return result;
}

}  // namespace

template <RealOrComplex Number>
SingularValues<Number> FactorSvd(const Number& a, bool vectors, bool full) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0);
    const int64_t rows = b.sizes().Fix(a.dim(1)), columns = b.sizes().Fix(a.dim(2));
    if (IsEmpty(a)) {
        const int64_t count = std::min(rows, columns);
        const auto identity = [&](int64_t size) {
            return vectors ? Identity<Number>(b, a.element(), {batch, size, full ? size : count})
                           : Number();
        };
        return {b.Full(a.element(), {batch, count}, 0), identity(rows), identity(columns)};
    }
    if (rows >= columns) {
        return FactorTall(a, vectors, full);
    }
    SingularValues<Number> result = FactorTall(Adjoint(a), vectors, full);
    std::swap(result.left, result.right);
    return result;
}

template Eigen<Val> SymmetricEigen(const Val&);
template Eigen<Complex> SymmetricEigen(const Complex&);
template SingularValues<Val> FactorSvd(const Val&, bool, bool);
template SingularValues<Complex> FactorSvd(const Complex&, bool, bool);

}  // namespace fornax::graph
