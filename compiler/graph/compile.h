// The graph compiler's entry point.
#pragma once

#include "base/result.h"
#include "compiler/graph/ir/graph.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph {

struct CompileOptions {
    // No calls on the host: a graph that needs one is refused, with all the reasons.
    bool strict = false;
};

// The plan of a graph that passes Verify(). Errors are sentences.
Result<Plan> Compile(Graph graph, const CompileOptions& options);

}  // namespace fornax::graph
