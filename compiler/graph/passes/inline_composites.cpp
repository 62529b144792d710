// Composites become their bodies.
#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

using Keep = std::function<bool(const Graph&, const Node&)>;

// A body's composites are inlined with it.
Status InlineNode(const Graph& graph,
                  const Node& node,
                  const Keep& keep,
                  Cloner& cloner,
                  Graph& to) {
    if (!Is<op::Composite>(node.operation) || keep(graph, node)) {
        return cloner.CopyNode(node);
    }
    FORNAX_ASSIGN_OR_RETURN(const Graph body, InlineComposites(*node.bodies[0], keep));
    FORNAX_ASSIGN_OR_RETURN(const std::vector<ValueId> results,
                            InlineBody(body, cloner.Map(node.operands), to));
    for (size_t i = 0; i < results.size(); ++i) {
        cloner.Set(node.results[i], results[i]);
    }
    return OkStatus();
}

}  // namespace

Result<Graph> InlineComposites(const Graph& graph, const Keep& keep) {
    return RewriteGraph(graph, [&](const Node& node, Cloner& cloner, Graph& to) {
        return InlineNode(graph, node, keep, cloner, to);
    });
}

}  // namespace fornax::graph
