// Products by constant integers, for the operators that multiply and those that convert.
#pragma once

#include <optional>

#include "compiler/frontends/torch/node.h"

namespace fornax::torch_frontend {

// a [..., k] times b [k, n], if b is made of constant integers that can be multiplied as such.
std::optional<Val> ProductOfIntegers(Val a, Val b);
// The value, or constant bytes that may be weights as floats of them that products recognise.
Val FloatsOfCodes(Val x, ElementType to);

// The operators that quantise.
std::span<const OperatorEntry> QuantisedOperators();

}  // namespace fornax::torch_frontend
