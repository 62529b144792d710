// What an iteration of a recurrence's kernel keeps for its own later phases: see recurrence.h.
#pragma once

#include <vector>

#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

// Whether the operation only shows its operand's elements in other places.
bool IsPlainView(const Operation& operation);

// Values that are computed once and kept in a local tensor, operands first: what reductions are
// computed from if it has reductions in it, and reductions that several phases or many points need.
// `step` is one iteration, `sinks` are what it stores.
std::vector<ValueId> FindKeptValues(const Graph& step, const std::vector<ValueId>& sinks);

}  // namespace fornax::graph
