// QR factorisations by Householder's reflections, as LAPACK's geqrf and ormqr: a reflection is
// 1 - factor v v', where v begins with 1, and makes a column a real number above zeros. Of complex
// numbers the adjoint is applied, whose factor is the conjugate.
#include <algorithm>
#include <concepts>
#include <utility>

#include "compiler/graph/build/index.h"
#include "compiler/graph/build/linear_algebra.h"
#include "compiler/graph/build/matrix_loops.h"

namespace fornax::graph {

template <RealOrComplex Number>
QrFactors<Number> FactorQr(const Number& a) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0), rows = a.dim(1), columns = a.dim(2);
    const int64_t count = std::min(b.sizes().Fix(rows), b.sizes().Fix(columns));
    const Number zeros = Zeros<Number>(b, a.element(), {batch, count});
    if (IsEmpty(a)) {
        return {a, zeros};
    }
    RequireFits(Pack(a));
    Unpacked results(b.Loop(
        b.Integer(ElementType::kI64, count), Pack(a, zeros), {},
        [&](Builder& body, Vals v) -> Vals {
            Unpacked given(std::move(v));
            const Val k = given.Next<Val>();
            const Number x = given.Next<Number>(), factors = given.Next<Number>();
            const Val number = body.Iota(ElementType::kI64, {batch, rows}, 1);
            const Number own = TakeOne(x, k, 2);
            const Val below = map::Less(k, number);
            const Val squares = SquaredSize(own);
            const Val square =
                Reduce(Combine::kSum, Where(below, squares, Like(squares, 0)), {1}, true);
            const Number corner = ElementAt(x, k, k);
            const Val real = RealPart(corner);
            // What is real above zeros already is not reflected.
            Val none = Equal(square, 0);
            if constexpr (std::same_as<Number, Complex>) {
                none = And(none, Equal(corner.imaginary, 0));
            }
            const Val norm = map::Sqrt(SquaredSize(corner) + square);
            const Number one = Like(corner, 1), zero = Like(corner, 0);
            const Val to = Where(none, real, Where(Less(real, 0), norm, -norm));
            const Number change = FromReal<Number>(to) - corner;
            const Number factor = Where(none, zero, change / Where(none, Like(to, 1), to));
            const Number scale =
                Where(none, zero, one / Where(none, one, corner - FromReal<Number>(to)));
            const Number reflector =
                Unsqueeze(Where(below, own * scale, Where(map::Equal(number, k), one, zero)), 2);
            const Number product = SumAlong(Conjugate(reflector) * x, 1, true);
            const Number reflected = x - Unsqueeze(Conjugate(factor), 2) * reflector * product;
            const Val row = RowNumbers(body, x.shape()), column = ColumnNumbers(body, x.shape());
            const Number in_column =
                Where(map::Less(k, row), reflector,
                      Where(map::Equal(row, k), FromReal<Number>(Unsqueeze(to, 2)), x));
            const Number next =
                Where(map::Less(k, column), reflected, Where(map::Equal(column, k), in_column, x));
            const Val step = body.Iota(ElementType::kI64, {batch, count}, 1);
            return Pack(next, Where(map::Equal(step, k), factor, factors));
        }));
    const Number packed = results.Next<Number>();
    return {packed, results.Next<Number>()};
}

template <RealOrComplex Number>
Number Reflect(const Number& packed, const Number& factors, const Number& x, bool first_first) {
    Builder& b = x.builder();
    const Expr batch = x.dim(0), rows = x.dim(1);
    const int64_t count = b.sizes().Fix(factors.dim(1));
    if (IsEmpty(x) || count == 0) {
        return x;
    }
    RequireFits(Pack(x));
    Unpacked results(b.Loop(
        b.Integer(ElementType::kI64, count), Pack(x), Pack(packed, factors),
        [&](Builder& body, Vals v) -> Vals {
            Unpacked given(std::move(v));
            const Val iteration = given.Next<Val>();
            const Number to = given.Next<Number>();
            const Number vectors = given.Next<Number>(), scales = given.Next<Number>();
            const Val k =
                first_first ? iteration : body.Integer(ElementType::kI64, count - 1) - iteration;
            const Val number = body.Iota(ElementType::kI64, {batch, rows}, 1);
            const Number own = TakeOne(vectors, k, 2);
            const Number head = FromReal<Number>(Cast(map::Equal(number, k), own.element()));
            const Number reflector = Unsqueeze(Where(map::Less(k, number), own, head), 2);
            const Number product = SumAlong(Conjugate(reflector) * to, 1, true);
            const Number scale = Reshape(TakeOne(scales, k, 1), {batch, 1, 1});
            const Number factor = first_first ? Conjugate(scale) : scale;
            return Pack(to - factor * reflector * product);
        }));
    return results.Next<Number>();
}

template <RealOrComplex Number>
Number OrthogonalOf(const Number& packed, const Number& factors, const Expr& columns) {
    const Number start = Identity<Number>(packed.builder(), packed.element(),
                                          {packed.dim(0), packed.dim(1), columns});
    return Reflect(packed, factors, start, false);
}

template QrFactors<Val> FactorQr(const Val&);
template QrFactors<Complex> FactorQr(const Complex&);
template Val Reflect(const Val&, const Val&, const Val&, bool);
template Complex Reflect(const Complex&, const Complex&, const Complex&, bool);
template Val OrthogonalOf(const Val&, const Val&, const Expr&);
template Complex OrthogonalOf(const Complex&, const Complex&, const Expr&);

}  // namespace fornax::graph
