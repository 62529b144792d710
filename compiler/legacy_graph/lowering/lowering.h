// Lowering: from the graph IR to a plan. Kernel selection, buffers, memory plan, descriptor plan,
// barriers.
#pragma once

#include "base/result.h"
#include "compiler/legacy_graph/graph.h"
#include "compiler/legacy_graph/plan.h"

namespace fornax::legacy_graph {

// Lowers a verified graph whose values are f32. Fails, naming the node, when a value has another
// type or a tensor does not fit a kernel's limits. Leaves Plan::graph_hash empty.
Result<Plan> Lower(const Graph& graph);

}  // namespace fornax::legacy_graph
