// Reads expressions as Expr::ToString() writes them.
#pragma once

#include <string_view>

#include "base/result.h"
#include "compiler/graph/ir/expr.h"

namespace fornax::graph {

// The longest text that ParseExpr takes, in bytes; it bounds time and memory as well.
inline constexpr size_t kMaxExprText = 4096;

// Whether text can name a symbol: letters, digits, '_' and '.', not a digit first, '$' before it
// for symbols of kernels; not the name of a function of expressions.
bool IsSymbolName(std::string_view name);

// Sums and products of integers, symbols, floor(a, b), mod(a, b), min(a, b), max(a, b) and
// product(a, b), with parentheses where wanted. Of what ToString() wrote, the same expression. The
// error is a clause that says what was expected where ("a number or name is missing at ')'").
Result<Expr> ParseExpr(std::string_view text);

}  // namespace fornax::graph
