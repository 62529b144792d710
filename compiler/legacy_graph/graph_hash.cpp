// Feeds a graph to the hash, field by field.
#include "compiler/legacy_graph/graph_hash.h"

#include "compiler/legacy_graph/kernel_library.h"
#include "compiler/legacy_graph/plan_file.h"

namespace fornax::legacy_graph {
namespace {

void HashShape(Hasher& hasher, const Shape& shape) {
    hasher.AppendArray(shape.dims());
}

void HashType(Hasher& hasher, const TensorType& type) {
    hasher.Append(type.type);
    HashShape(hasher, type.shape);
}

// Hashes one parameter of an operator.
struct FieldHasher {
    Hasher& hasher;

    void Value(uint32_t value) const { hasher.Append(value); }
    void Value(BinaryFunction value) const { hasher.Append(value); }
    void Value(op::ReduceKind value) const { hasher.Append(value); }
    void Value(const Shape& value) const { HashShape(hasher, value); }
    void Value(const std::vector<uint32_t>& value) const {
        hasher.AppendArray(std::span<const uint32_t>(value));
    }
    void Value(const Activation& value) const {
        hasher.Append(value.function).Append(value.a).Append(value.b);
    }
    void Value(const Window& value) const {
        hasher.AppendArray(std::span<const uint32_t>(value.kernel));
        hasher.AppendArray(std::span<const uint32_t>(value.strides));
        hasher.AppendArray(std::span<const uint32_t>(value.dilations));
        hasher.AppendArray(std::span<const uint32_t>(value.pads));
    }

    void operator()(std::string_view name, const auto& value) const {
        hasher.Append(name);
        Value(value);
    }
};

void HashNode(Hasher& hasher, const Node& node) {
    hasher.Append(node.name);
    hasher.Append(Name(node.operation));
    std::visit([&](const auto& op) { op.Fields(FieldHasher{hasher}); }, node.operation);
    hasher.AppendListSize(node.operands.size());
    for (ValueId operand : node.operands) {
        hasher.Append(operand.value());
    }
    hasher.Append(node.result.value());
}

void HashValue(Hasher& hasher, const Value& value) {
    hasher.Append(value.name);
    hasher.Append(value.kind);
    HashType(hasher, value.type);
    if (value.kind == ValueKind::kConstant) {
        hasher.AppendBytes(std::as_bytes(std::span(*value.data)));
    }
}

}  // namespace

Hash128 HashGraph(const Graph& graph, const CompileOptions& options) {
    Hasher hasher;
    hasher.Append("fornax graph " FORNAX_VERSION);
    hasher.Append(kPlanFormatVersion);
    hasher.Append(KernelLibraryDigest());
    hasher.Append(options.fuse);
    hasher.Append(graph.name());
    hasher.AppendListSize(graph.values().size());
    for (const Value& value : graph.values()) {
        HashValue(hasher, value);
    }
    hasher.AppendListSize(graph.nodes().size());
    for (const Node& node : graph.nodes()) {
        HashNode(hasher, node);
    }
    hasher.AppendListSize(graph.inputs().size());
    for (ValueId input : graph.inputs()) {
        hasher.Append(input.value());
    }
    hasher.AppendListSize(graph.outputs().size());
    for (const Output& output : graph.outputs()) {
        hasher.Append(output.name).Append(output.value.value());
    }
    return hasher.Finish();
}

}  // namespace fornax::legacy_graph
