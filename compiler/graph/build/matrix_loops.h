// What the loops of linear_algebra.h share. Matrices are [batch, rows, columns].
#pragma once

#include "compiler/graph/build/complex.h"

namespace fornax::graph {

// Fails unless workgroup memory holds the matrices that a loop carries.
void RequireFits(const Vals& carried);
template <RealOrComplex Number>
bool IsEmpty(const Number& x) {
    return x.builder().sizes().Equal(x.shape().Volume(), 0);
}
// i64 of the shape: each element's row, or column.
Val RowNumbers(Builder& b, const Shape& shape);
Val ColumnNumbers(Builder& b, const Shape& shape);
// One element of each matrix, [batch, 1]; row and column are i64 that are broadcast to that.
template <RealOrComplex Number>
Number ElementAt(const Number& x, Val row, Val column) {
    return Gather(x, {0, -1, -2}, {row, column}, {x.dim(0), 1});
}
// Ones on the diagonal.
template <RealOrComplex Number>
Number Identity(Builder& b, ElementType type, const Shape& shape) {
    return FromReal<Number>(Cast(map::Equal(RowNumbers(b, shape), ColumnNumbers(b, shape)), type));
}
template <RealOrComplex Number>
Number Zeros(Builder& b, ElementType type, const Shape& shape) {
    return FromReal<Number>(b.Full(type, shape, 0));
}

}  // namespace fornax::graph
