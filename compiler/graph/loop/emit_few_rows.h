// Sums of products of few rows: matrix times vector, and times a handful of vectors.
//
// Such a product is bound by reading b once. An invocation computes one column with an accumulator
// for each row: invocations side by side read neighbouring columns, and each element of b is used
// for all rows while it is in a register.
#pragma once

#include "compiler/graph/loop/mapping_part.h"
#include "compiler/graph/loop/product.h"

namespace fornax::graph::loop {

// A product that HasFewRows().
void EmitFewRows(KernelParts& parts, const Product& product);

}  // namespace fornax::graph::loop
