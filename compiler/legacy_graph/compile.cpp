// The order of passes.
#include "compiler/legacy_graph/compile.h"

#include "compiler/legacy_graph/graph_hash.h"
#include "compiler/legacy_graph/lowering/lowering.h"
#include "compiler/legacy_graph/passes/passes.h"

namespace fornax::legacy_graph {

Result<Plan> Compile(Graph graph, const CompileOptions& options) {
    FORNAX_RETURN_IF_ERROR(Verify(graph));
    const Hash128 hash = HashGraph(graph, options);
    FoldConstants(graph);
    Simplify(graph);
    if (options.fuse) {
        Fuse(graph);
    }
    graph.Compact();
    FORNAX_RETURN_IF_ERROR(Verify(graph));
    FORNAX_ASSIGN_OR_RETURN(Plan plan, Lower(graph));
    plan.graph_hash = hash.ToHex();
    return plan;
}

}  // namespace fornax::legacy_graph
