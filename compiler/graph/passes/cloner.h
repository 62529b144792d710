// Copies a graph node by node into another one, the frame of every pass that replaces nodes.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

class Cloner {
  public:
    // `from` outlives the cloner. Takes over the symbols and the guards.
    Cloner(const Graph& from, Graph& to);

    // The inputs, as inputs of the new graph.
    void CopyInputs();
    // The outputs; every value that they name has been mapped.
    void CopyOutputs();
    // Copies a node with its operands mapped.
    Status CopyNode(const Node& node);

    // The value of the new graph in place of `value`; constants are copied when first asked for.
    ValueId Map(ValueId value);
    std::vector<ValueId> Map(const std::vector<ValueId>& values);
    void Set(ValueId value, ValueId replacement) { map_[value.value()] = replacement; }

  private:
    const Graph& from_;
    Graph& to_;
    std::vector<ValueId> map_;
};

// A new graph that `rewrite` fills node by node: it copies the node or maps its results otherwise.
template <typename Rewrite>
Result<Graph> RewriteGraph(const Graph& graph, Rewrite rewrite) {
    Graph result(graph.name());
    Cloner cloner(graph, result);
    cloner.CopyInputs();
    for (const Node& node : graph.nodes()) {
        FORNAX_RETURN_IF_ERROR(rewrite(node, cloner, result));
    }
    cloner.CopyOutputs();
    result.Compact();
    return result;
}

// As RewriteGraph, by the Visit() of a Visitor, which is made of the cloner and the new graph.
template <typename Visitor, typename... Options>
Result<Graph> VisitGraph(const Graph& graph, Options... options) {
    std::optional<Visitor> visitor;
    return RewriteGraph(graph, [&](const Node& node, Cloner& cloner, Graph& to) {
        if (!visitor) {
            visitor.emplace(cloner, to, options...);
        }
        return visitor->Visit(node);
    });
}

// Copies the nodes of a body; gives the values of its outputs. `operands` are values of `to` in
// place of the body's inputs.
Result<std::vector<ValueId>> InlineBody(const Graph& body,
                                        const std::vector<ValueId>& operands,
                                        Graph& to);

}  // namespace fornax::graph
