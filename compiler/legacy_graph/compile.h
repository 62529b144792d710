// The graph compiler's door: a graph from a frontend in, a plan out.
#pragma once

#include "base/result.h"
#include "compiler/legacy_graph/graph.h"
#include "compiler/legacy_graph/plan.h"

namespace fornax::legacy_graph {

struct CompileOptions {
    bool fuse = true;  // join operators with the biases and activations behind them
};

// Verifies the graph, runs the passes and lowers it. The plan's graph_hash is that of the graph as
// it came in. Fails with a sentence that names the node when a value is not f32 or exceeds a
// kernel's limits.
Result<Plan> Compile(Graph graph, const CompileOptions& options);

}  // namespace fornax::legacy_graph
