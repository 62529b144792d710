// The rules that every pass keeps.
#include <fmt/format.h>

#include "compiler/graph/ir/graph.h"

namespace fornax::graph {
namespace {

Error Broken(const Graph& graph, const Node& node, std::string_view rule) {
    return {ErrorCode::kInvalidArgument,
            fmt::format("The node {} ({}) of the graph {} is wrong: {}.", node.name,
                        Name(node.operation), graph.name(), rule)};
}

Error BrokenValue(const Graph& graph, const Value& value, std::string_view rule) {
    return {ErrorCode::kInvalidArgument, fmt::format("The value {} of the graph {} is wrong: {}.",
                                                     value.name, graph.name(), rule)};
}

Status VerifyConstant(const Graph& graph, const Value& value) {
    const Tensor& tensor = value.constant;
    if (tensor.type() != value.type) {
        return BrokenValue(graph, value, "the constant is of another type");
    }
    const auto count = static_cast<size_t>(tensor.count());
    const bool whole = tensor.element == ElementType::kString
                           ? tensor.strings && tensor.strings->size() == count
                           : tensor.data && tensor.data->size() == count * BytesOf(tensor.element);
    if (!whole) {
        return BrokenValue(graph, value, "the constant does not have the bytes of its type");
    }
    return OkStatus();
}

Status VerifyNode(const Graph& graph, NodeId id, SizeFacts& sizes, std::vector<bool>& defined) {
    const Node& node = graph[id];
    std::vector<TensorType> operands;
    for (const ValueId operand : node.operands) {
        if (!operand.valid() || operand.value() >= graph.values().size()) {
            return Broken(graph, node, "an operand does not exist");
        }
        if (!defined[operand.value()]) {
            return Broken(graph, node, "an operand is computed later");
        }
        operands.push_back(graph.TypeOf(operand));
    }
    for (const Body& body : node.bodies) {
        if (body == nullptr) {
            return Broken(graph, node, "a body is missing");
        }
        FORNAX_RETURN_IF_ERROR(Verify(*body));
    }
    Result<std::vector<TensorType>> types =
        InferTypes(node.operation, operands, node.bodies, sizes);
    if (!types.ok()) {
        return Broken(graph, node, types.error().message);
    }
    if (types->size() != node.results.size()) {
        return Broken(graph, node, "it has another number of results");
    }
    for (size_t i = 0; i < types->size(); ++i) {
        const ValueId result = node.results[i];
        if (!result.valid() || result.value() >= graph.values().size()) {
            return Broken(graph, node, "a result does not exist");
        }
        const Value& value = graph[result];
        if (value.kind == ValueKind::kConstant) {
            continue;  // folded, while the node's other results are in use
        }
        if (value.kind != ValueKind::kResult || value.producer != id || value.result_index != i ||
            defined[result.value()]) {
            return Broken(graph, node, "a result is computed elsewhere too");
        }
        const TensorType& type = (*types)[i];
        if (value.type.element != type.element || !sizes.Equal(value.type.shape, type.shape)) {
            return Broken(
                graph, node,
                fmt::format("its result is {}, not {}", value.type.ToString(), type.ToString()));
        }
        defined[result.value()] = true;
    }
    return OkStatus();
}

}  // namespace

Status Verify(const Graph& graph) {
    SizeFacts sizes = graph.sizes();
    std::vector<bool> defined(graph.values().size(), false);
    for (size_t v = 0; v < graph.values().size(); ++v) {
        const Value& value = graph.values()[v];
        if (value.kind == ValueKind::kConstant) {
            FORNAX_RETURN_IF_ERROR(VerifyConstant(graph, value));
        }
        defined[v] = value.kind != ValueKind::kResult;
    }
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
        FORNAX_RETURN_IF_ERROR(VerifyNode(graph, NodeId(n), sizes, defined));
    }
    for (const Output& output : graph.outputs()) {
        if (!output.value.valid() || output.value.value() >= graph.values().size() ||
            !defined[output.value.value()]) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("The output {} of the graph {} is computed by no node.",
                                     output.name, graph.name())};
        }
    }
    return OkStatus();
}

}  // namespace fornax::graph
