// Scalars that compute the same at points of different loops.
#pragma once

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {

// Whether `b` at the point `y` is what `a` is at the point `x`, for all values of the other
// variables.
bool IsSameAt(const Kernel& kernel,
              const Scope& scope,
              ScalarId a,
              const Symbol& x,
              ScalarId b,
              const Symbol& y);

}  // namespace fornax::graph::loop
