// Building and compacting graphs.
#include "compiler/legacy_graph/graph.h"

#include <cassert>
#include <cstring>
#include <utility>

namespace fornax::legacy_graph {

ValueId Graph::AddValue(Value value) {
    value.name = Printable(value.name);
    values_.push_back(std::move(value));
    return ValueId(values_.size() - 1);
}

ValueId Graph::AddInput(std::string name, TensorType type) {
    const ValueId id = AddValue({std::move(name), std::move(type), ValueKind::kInput, {}, {}});
    inputs_.push_back(id);
    return id;
}

ValueId Graph::AddConstant(std::string name, TensorType type, std::vector<uint8_t> data) {
    assert(data.size() == type.size_bytes());
    return AddValue({std::move(name),
                     std::move(type),
                     ValueKind::kConstant,
                     {},
                     std::make_shared<const std::vector<uint8_t>>(std::move(data))});
}

ValueId Graph::AddFloats(std::string name, Shape shape, std::span<const float> values) {
    std::vector<uint8_t> data(values.size_bytes());
    std::memcpy(data.data(), values.data(), data.size());
    return AddConstant(std::move(name), {DataType::kF32, std::move(shape)}, std::move(data));
}

Result<ValueId> Graph::AddNode(std::string name,
                               Operator operation,
                               std::vector<ValueId> operands) {
    std::vector<TensorType> types;
    for (ValueId operand : operands) {
        types.push_back(values_[operand.value()].type);
    }
    FORNAX_ASSIGN_OR_RETURN(TensorType type, InferType(operation, types));
    const NodeId node(nodes_.size());
    const ValueId result = AddValue({name, std::move(type), ValueKind::kNodeResult, node, {}});
    nodes_.push_back({Printable(name), std::move(operation), std::move(operands), result});
    return result;
}

void Graph::AddOutput(std::string name, ValueId value) {
    outputs_.push_back({Printable(name), value});
}

const Node* Graph::Producer(ValueId id) const {
    const Value& value = values_[id.value()];
    return value.kind == ValueKind::kNodeResult ? &nodes_[value.producer.value()] : nullptr;
}

void Graph::MakeConstant(ValueId id, std::vector<uint8_t> data) {
    Value& value = values_[id.value()];
    assert(data.size() == value.type.size_bytes());
    value.kind = ValueKind::kConstant;
    value.producer = {};
    value.data = std::make_shared<const std::vector<uint8_t>>(std::move(data));
}

std::vector<uint32_t> Graph::CountUses() const {
    std::vector<uint32_t> uses(values_.size(), 0);
    for (const Node& node : nodes_) {
        for (ValueId operand : node.operands) {
            ++uses[operand.value()];
        }
    }
    for (const Output& output : outputs_) {
        ++uses[output.value.value()];
    }
    return uses;
}

void Graph::Compact() {
    std::vector<bool> live(values_.size(), false);
    for (const Output& output : outputs_) {
        live[output.value.value()] = true;
    }
    for (size_t i = nodes_.size(); i-- > 0;) {  // uses come after definitions
        const Node& node = nodes_[i];
        if (!live[node.result.value()] ||
            values_[node.result.value()].kind != ValueKind::kNodeResult) {
            continue;
        }
        for (ValueId operand : node.operands) {
            live[operand.value()] = true;
        }
    }
    for (ValueId input : inputs_) {
        live[input.value()] = true;
    }

    std::vector<Value> values;
    std::vector<ValueId> renumbered(values_.size());
    for (size_t i = 0; i < values_.size(); ++i) {
        if (!live[i]) {
            continue;
        }
        renumbered[i] = ValueId(values.size());
        values.push_back(std::move(values_[i]));
    }
    std::vector<Node> nodes;
    for (Node& node : nodes_) {
        const ValueId result = renumbered[node.result.value()];
        if (!result.valid() || values[result.value()].kind != ValueKind::kNodeResult) {
            continue;
        }
        for (ValueId& operand : node.operands) {
            operand = renumbered[operand.value()];
        }
        node.result = result;
        values[result.value()].producer = NodeId(nodes.size());
        nodes.push_back(std::move(node));
    }
    for (ValueId& input : inputs_) {
        input = renumbered[input.value()];
    }
    for (Output& output : outputs_) {
        output.value = renumbered[output.value.value()];
    }
    values_ = std::move(values);
    nodes_ = std::move(nodes);
}

std::span<const float> Floats(const Value& value) {
    assert(value.kind == ValueKind::kConstant && value.type.type == DataType::kF32);
    return {reinterpret_cast<const float*>(value.data->data()), value.data->size() / sizeof(float)};
}

std::span<const int64_t> Integers(const Value& value) {
    assert(value.kind == ValueKind::kConstant && value.type.type == DataType::kI64);
    return {reinterpret_cast<const int64_t*>(value.data->data()),
            value.data->size() / sizeof(int64_t)};
}

}  // namespace fornax::legacy_graph
