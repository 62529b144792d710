// Copies of graphs and bodies.
#include "compiler/graph/passes/cloner.h"

#include <cassert>

#include <fmt/format.h>

namespace fornax::graph {

Cloner::Cloner(const Graph& from, Graph& to) : from_(from), to_(to), map_(from.values().size()) {
    to_.sizes().Merge(from.sizes());
}

void Cloner::CopyInputs() {
    for (const ValueId input : from_.inputs()) {
        Set(input, to_.AddInput(from_[input].name, from_[input].type));
    }
}

void Cloner::CopyOutputs() {
    for (const Output& output : from_.outputs()) {
        to_.AddOutput(output.name, Map(output.value));
    }
}

ValueId Cloner::Map(ValueId value) {
    ValueId& mapped = map_[value.value()];
    if (!mapped.valid()) {
        const Value& source = from_[value];
        assert(source.kind == ValueKind::kConstant);
        mapped = to_.AddConstant(source.name, source.constant);
    }
    return mapped;
}

std::vector<ValueId> Cloner::Map(const std::vector<ValueId>& values) {
    std::vector<ValueId> mapped;
    mapped.reserve(values.size());
    for (const ValueId value : values) {
        mapped.push_back(Map(value));
    }
    return mapped;
}

Status Cloner::CopyNode(const Node& node) {
    Result<NodeId> copy = to_.AddNode(node.name, node.operation, Map(node.operands), node.bodies);
    if (!copy.ok()) {
        return Error{copy.error().code,
                     fmt::format("The node {}: {}.", node.name, copy.error().message)};
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
        const ValueId result = to_[*copy].results[i];
        if (from_[node.results[i]].kind == ValueKind::kConstant) {
            continue;  // folded; its uses see the constant
        }
        to_.Rename(result, from_[node.results[i]].name);
        Set(node.results[i], result);
    }
    return OkStatus();
}

Result<std::vector<ValueId>> InlineBody(const Graph& body,
                                        const std::vector<ValueId>& operands,
                                        Graph& to) {
    Cloner cloner(body, to);
    assert(body.inputs().size() == operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
        cloner.Set(body.inputs()[i], operands[i]);
    }
    for (const Node& node : body.nodes()) {
        FORNAX_RETURN_IF_ERROR(cloner.CopyNode(node));
    }
    std::vector<ValueId> results;
    for (const Output& output : body.outputs()) {
        results.push_back(cloner.Map(output.value));
    }
    return results;
}

}  // namespace fornax::graph
