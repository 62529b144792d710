// Products that are computed a column an invocation, with all rows at once (emit_few_rows.cpp).
#pragma once

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/product.h"

namespace fornax::graph::loop {

// Each row is an accumulator in registers.
inline constexpr int64_t kMostFewRows = 8;

// Whether the product has at most so many rows, and neighbouring columns of b lie side by side in
// memory, singly or in panels of 16.
bool HasFewRows(const Kernel& kernel, const Scope& scope, const Product& product);

}  // namespace fornax::graph::loop
