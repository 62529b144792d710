// QR factorisations by Householder's reflections, as LAPACK's geqrf and ormqr.
#include <algorithm>

#include "compiler/graph/build/index.h"
#include "compiler/graph/build/linear_algebra.h"
#include "compiler/graph/build/matrix_loops.h"

namespace fornax::graph {

QrFactors FactorQr(Val a) {
    Builder& b = a.builder();
    const Expr batch = a.dim(0), rows = a.dim(1), columns = a.dim(2);
    const int64_t count = std::min(b.sizes().Fix(rows), b.sizes().Fix(columns));
    const Val zeros = b.Full(a.element(), {batch, count}, 0);
    if (IsEmpty(a)) {
        return {a, zeros};
    }
    RequireFits({a});
    const Vals results = b.Loop(
        b.Integer(ElementType::kI64, count), {a, zeros}, {}, [&](Builder& body, Vals v) -> Vals {
            const Val k = v[0], x = v[1];
            const Val number = body.Iota(ElementType::kI64, {batch, rows}, 1);
            const Val own = TakeOne(x, k, 2);
            const Val below = map::Less(k, number);
            const Val square =
                Reduce(Combine::kSum, Where(below, own * own, Like(own, 0)), {1}, true);
            const Val corner = ElementAt(x, k, k);
            // What is zero already is not reflected.
            const Val none = Equal(square, 0);
            const Val norm = map::Sqrt(corner * corner + square);
            const Val one = Like(corner, 1), zero = Like(corner, 0);
            const Val to = Where(none, corner, Where(Less(corner, 0), norm, -norm));
            const Val factor = Where(none, zero, (to - corner) / Where(none, one, to));
            const Val scale = Where(none, zero, one / Where(none, one, corner - to));
            const Val reflector =
                Unsqueeze(Where(below, own * scale, Where(map::Equal(number, k), one, zero)), 2);
            const Val product = Reduce(Combine::kSum, reflector * x, {1}, true);
            const Val reflected = x - Unsqueeze(factor, 2) * reflector * product;
            const Val row = RowNumbers(body, x.shape()), column = ColumnNumbers(body, x.shape());
            const Val in_column =
                Where(map::Less(k, row), reflector, Where(map::Equal(row, k), Unsqueeze(to, 2), x));
            const Val next =
                Where(map::Less(k, column), reflected, Where(map::Equal(column, k), in_column, x));
            const Val step = body.Iota(ElementType::kI64, {batch, count}, 1);
            return {next, Where(map::Equal(step, k), factor, v[2])};
        });
    return {results[0], results[1]};
}

Val Reflect(Val packed, Val factors, Val x, bool first_first) {
    Builder& b = x.builder();
    const Expr batch = x.dim(0), rows = x.dim(1);
    const int64_t count = b.sizes().Fix(factors.dim(1));
    if (IsEmpty(x) || count == 0) {
        return x;
    }
    RequireFits({x});
    return b.Loop(
        b.Integer(ElementType::kI64, count), {x}, {packed, factors},
        [&](Builder& body, Vals v) -> Vals {
            const Val k = first_first ? v[0] : body.Integer(ElementType::kI64, count - 1) - v[0];
            const Val number = body.Iota(ElementType::kI64, {batch, rows}, 1);
            const Val own = TakeOne(v[2], k, 2);
            const Val reflector = Unsqueeze(
                Where(map::Less(k, number), own, Cast(map::Equal(number, k), own.element())), 2);
            const Val product = Reduce(Combine::kSum, reflector * v[1], {1}, true);
            const Val factor = Reshape(TakeOne(v[3], k, 1), {batch, 1, 1});
            return {v[1] - factor * reflector * product};
        })[0];
}

Val OrthogonalOf(Val packed, Val factors, const Expr& columns) {
    const Val start =
        Identity(packed.builder(), packed.element(), {packed.dim(0), packed.dim(1), columns});
    return Reflect(packed, factors, start, false);
}

}  // namespace fornax::graph
