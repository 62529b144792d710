// What the loops of linear_algebra.h share. Matrices are [batch, rows, columns].
#pragma once

#include <initializer_list>

#include "compiler/graph/build/builder.h"

namespace fornax::graph {

// Fails unless workgroup memory holds the matrices that a loop carries.
void RequireFits(std::initializer_list<Val> carried);
bool IsEmpty(Val x);
// i64 of the shape: each element's row, or column.
Val RowNumbers(Builder& b, const Shape& shape);
Val ColumnNumbers(Builder& b, const Shape& shape);
// One element of each matrix, [batch, 1]; row and column are i64 that are broadcast to that.
Val ElementAt(Val x, Val row, Val column);
// Ones on the diagonal.
Val Identity(Builder& b, ElementType type, const Shape& shape);

}  // namespace fornax::graph
