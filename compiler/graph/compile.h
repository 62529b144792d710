// The graph compiler's entry point.
#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph {

struct CompileOptions {
    // No calls on the host: a graph that needs one is refused, with all the reasons.
    bool strict = false;
    // The names of sizes for which the plan is to hold whatever they are. All others are taken to
    // be what their hints say, which makes faster kernels, and another plan for each.
    std::set<std::string> dynamic_sizes;
};

// The plan of a graph that passes Verify(). Errors are sentences.
Result<Plan> Compile(Graph graph, const CompileOptions& options);

// Fails, with all the reasons, if a step of the plan runs on the host.
Status CheckStrict(const Plan& plan);

}  // namespace fornax::graph
