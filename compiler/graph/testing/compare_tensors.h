// Compares tensors of two implementations.
#pragma once

#include <string>

#include "compiler/graph/ir/types.h"

namespace fornax::graph::testing {

// A sentence about the first difference of types or of more than `tolerance` between elements;
// empty if there is none. NaN equals NaN.
std::string Difference(const Tensor& actual, const Tensor& expected, double tolerance);

}  // namespace fornax::graph::testing
