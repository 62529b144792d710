// Costly values of a row that a reduction and the stores compute alike, such as the exponentials of
// a softmax: they are kept between the two.
#pragma once

#include <vector>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {

struct KeptValue {
    ScalarId reduced;  // in the body of a reduction over the points of the row
    Symbol point;      // the variable of the reduction
    ScalarId stored;   // the same at the row's point
};

// The kernel must be mapped to rows of a constant number of points along one loop, where this and
// what is kept are few.
std::vector<KeptValue> FindKeptValues(const Kernel& kernel, const Scope& scope);

}  // namespace fornax::graph::loop
