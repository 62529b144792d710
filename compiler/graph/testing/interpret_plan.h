// Runs a plan on the host, its kernels by their interpreter: what tells faults of the scheduler
// from those of the code generator.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/result.h"
#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph::testing {

// The bytes of a plan's states, by block; nothing of those that no run has used.
using PlanStates = std::map<BlockId, std::vector<uint8_t>>;

// The outputs for inputs that fit the plan's ports. Symbols have the values that the inputs' sizes
// give them, or the ones in `hints`. States
// begin with what `states` holds, if it is not null, and leave their new values there.
Result<std::vector<Tensor>> InterpretPlan(const Plan& plan,
                                          std::span<const Tensor> inputs,
                                          const Bindings& hints,
                                          const InterpretOptions& options = {},
                                          PlanStates* states = nullptr);

}  // namespace fornax::graph::testing
