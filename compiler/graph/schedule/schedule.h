// Cuts a graph into kernels and calls on the host: the last stage before a plan.
#pragma once

#include "base/result.h"
#include "compiler/graph/ir/graph.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph {

// The graph holds primitives only, as passes/ leave it.
Result<Plan> Schedule(const Graph& graph);

}  // namespace fornax::graph
