// Loops over time as one kernel: LSTM, GRU, and whatever else carries small tensors from iteration
// to iteration.
//
// A workgroup keeps the carried tensors in workgroup memory and goes through all iterations; a
// product of a carried tensor with a matrix is a sum in each invocation. So a loop costs one
// dispatch, and its matrices stay in the caches.
#pragma once

#include <vector>

#include "compiler/graph/schedule/plan_builder.h"

namespace fornax::graph {

// Whether the loop can be such a kernel: the number of its iterations is known when it begins, an
// iteration consists of what can be inlined and of reductions, and what it carries is small.
// Carried tensors of any size may be those into which each iteration writes a part.
bool IsRecurrence(const Graph& graph, const Node& loop);

// The values that the kernel of a loop reads from memory.
std::vector<ValueId> RecurrenceOperands(const Graph& graph, const Node& loop);

void AddRecurrence(const Graph& graph,
                   std::vector<bool>& realized,
                   const Node& node,
                   PlanBuilder& plan);

}  // namespace fornax::graph
