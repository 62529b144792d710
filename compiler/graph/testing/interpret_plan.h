// Runs a plan on the host, its kernels by their interpreter: what tells faults of the scheduler
// from those of the code generator.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph::testing {

// The outputs for inputs that fit the plan's ports. Symbols have the values that the inputs' sizes
// give them, or the ones in `hints`.
Result<std::vector<Tensor>> InterpretPlan(const Plan& plan,
                                          std::span<const Tensor> inputs,
                                          const Bindings& hints,
                                          const InterpretOptions& options = {});

}  // namespace fornax::graph::testing
