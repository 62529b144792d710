// Cuts a graph into kernels and calls on the host: the last stage before a plan.
#pragma once

#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/graph/schedule/boundaries.h"

namespace fornax::graph {

// The graph holds primitives only, as passes/ leave it. `boundaries`, if not null, receives why
// there are kernels of their own. `serial`: for one processor, without hand-written kernels.
Result<Plan> Schedule(const Graph& graph,
                      std::vector<Boundary>* boundaries = nullptr,
                      bool serial = false);

}  // namespace fornax::graph
