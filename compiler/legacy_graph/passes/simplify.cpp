// Simplify: removes nodes that change nothing.
#include "compiler/legacy_graph/passes/passes.h"
#include "compiler/legacy_graph/passes/rewrite.h"

namespace fornax::legacy_graph {
namespace {

bool IsIdentity(const Graph& graph, const Node& node) {
    if (const auto* unary = std::get_if<op::Unary>(&node.operation)) {
        return unary->activation.function == UnaryFunction::kIdentity;
    }
    if (std::holds_alternative<op::Reshape>(node.operation)) {
        return graph[node.operands[0]].type == graph[node.result].type;
    }
    if (const auto* transpose = std::get_if<op::Transpose>(&node.operation)) {
        for (size_t i = 0; i < transpose->permutation.size(); ++i) {
            if (transpose->permutation[i] != i) {
                return false;
            }
        }
        return true;
    }
    return false;
}

}  // namespace

void Simplify(Graph& graph) {
    Replacements replacements(graph);
    for (uint32_t i = 0; i < graph.nodes().size(); ++i) {
        Node& node = graph.MutableNode(NodeId(i));
        replacements.Update(node);
        if (std::holds_alternative<op::Reshape>(node.operation)) {
            // A reshape of a reshape starts from the first one's operand.
            const Node* producer = graph.Producer(node.operands[0]);
            if (producer != nullptr && std::holds_alternative<op::Reshape>(producer->operation)) {
                node.operands[0] = producer->operands[0];
            }
        }
        if (IsIdentity(graph, node)) {
            replacements.Replace(node.result, node.operands[0]);
        }
    }
    replacements.Finish(graph);
}

}  // namespace fornax::legacy_graph
