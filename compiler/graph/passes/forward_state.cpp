// One read of a state at the beginning, one write at the end.
#include <map>

#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {

Result<Graph> ForwardState(const Graph& graph) {
    std::map<std::string, ValueId> current;         // of the new graph
    std::map<std::string, const Node*> last_write;  // of the old one
    for (const Node& node : graph.nodes()) {
        if (const auto* write = std::get_if<op::WriteState>(&node.operation)) {
            last_write[write->state] = &node;
        }
    }
    return RewriteGraph(graph, [&](const Node& node, Cloner& cloner, Graph&) -> Status {
        if (const auto* read = std::get_if<op::ReadState>(&node.operation)) {
            const auto found = current.find(read->state);
            if (found != current.end()) {
                cloner.Set(node.results[0], found->second);
                return OkStatus();
            }
            FORNAX_RETURN_IF_ERROR(cloner.CopyNode(node));
            current[read->state] = cloner.Map(node.results[0]);
            return OkStatus();
        }
        if (const auto* write = std::get_if<op::WriteState>(&node.operation)) {
            current[write->state] = cloner.Map(node.operands[0]);
            return last_write.at(write->state) == &node ? cloner.CopyNode(node) : OkStatus();
        }
        return cloner.CopyNode(node);
    });
}

}  // namespace fornax::graph
