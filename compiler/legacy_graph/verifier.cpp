// Verify: the rules of the graph IR, checked after frontends and after every pass.
#include <fmt/format.h>

#include "compiler/legacy_graph/graph.h"

namespace fornax::legacy_graph {
namespace {

Error Broken(std::string message) {
    return {ErrorCode::kInternal, std::move(message)};
}

Status VerifyValue(const Graph& graph, uint32_t index) {
    const Value& value = graph.values()[index];
    switch (value.kind) {
        case ValueKind::kInput:
            return OkStatus();
        case ValueKind::kConstant:
            if (!value.data || value.data->size() != value.type.size_bytes()) {
                return Broken(fmt::format("The constant {} does not hold the {} bytes of {}.",
                                          value.name, value.type.size_bytes(),
                                          value.type.ToString()));
            }
            return OkStatus();
        case ValueKind::kNodeResult:
            if (value.producer.value() >= graph.nodes().size() ||
                graph[value.producer].result.value() != index) {
                return Broken(
                    fmt::format("The value {} is not the result of its producer.", value.name));
            }
            return OkStatus();
    }
    return Broken(fmt::format("The value {} is of no known kind.", value.name));
}

Status VerifyNode(const Graph& graph, uint32_t index) {
    const Node& node = graph.nodes()[index];
    std::vector<TensorType> types;
    for (ValueId operand : node.operands) {
        if (operand.value() >= graph.values().size()) {
            return Broken(fmt::format("The node {} uses value {} of {}.", node.name,
                                      operand.value(), graph.values().size()));
        }
        const Value& value = graph[operand];
        if (value.kind == ValueKind::kNodeResult && value.producer.value() >= index) {
            return Broken(
                fmt::format("The node {} uses {} before it is computed.", node.name, value.name));
        }
        types.push_back(value.type);
    }
    Result<TensorType> type = InferType(node.operation, types);
    if (!type.ok()) {
        return Broken(fmt::format("The node {} ({}): {}.", node.name, Name(node.operation),
                                  type.error().message));
    }
    if (node.result.value() >= graph.values().size()) {
        return Broken(fmt::format("The node {} has no result.", node.name));
    }
    if (!(graph[node.result].type == *type)) {
        return Broken(fmt::format("The node {} computes {}, but its result is of type {}.",
                                  node.name, type->ToString(), graph[node.result].type.ToString()));
    }
    return OkStatus();
}

}  // namespace

Status Verify(const Graph& graph) {
    for (uint32_t i = 0; i < graph.nodes().size(); ++i) {
        FORNAX_RETURN_IF_ERROR(VerifyNode(graph, i));
    }
    for (uint32_t i = 0; i < graph.values().size(); ++i) {
        FORNAX_RETURN_IF_ERROR(VerifyValue(graph, i));
    }
    for (ValueId input : graph.inputs()) {
        if (input.value() >= graph.values().size() || graph[input].kind != ValueKind::kInput) {
            return Broken(
                fmt::format("Input {} of the graph is not an input value.", input.value()));
        }
    }
    for (const Output& output : graph.outputs()) {
        if (output.value.value() >= graph.values().size()) {
            return Broken(fmt::format("The output {} is not a value of the graph.", output.name));
        }
    }
    return OkStatus();
}

}  // namespace fornax::legacy_graph
