// Building and changing graphs.
#include "compiler/graph/ir/graph.h"

#include <algorithm>
#include <cassert>

namespace fornax::graph {

ValueId Graph::AddValue(Value value) {
    const ValueId id(values_.size());
    values_.push_back(std::move(value));
    return id;
}

ValueId Graph::AddInput(std::string name, TensorType type) {
    Value value;
    value.name = std::move(name);
    value.type = std::move(type);
    value.kind = ValueKind::kInput;
    const ValueId id = AddValue(std::move(value));
    inputs_.push_back(id);
    return id;
}

ValueId Graph::AddConstant(std::string name, Tensor tensor) {
    Value value;
    value.name = std::move(name);
    value.type = tensor.type();
    value.kind = ValueKind::kConstant;
    value.constant = std::move(tensor);
    return AddValue(std::move(value));
}

Result<NodeId> Graph::AddNode(std::string name,
                              Operation operation,
                              std::vector<ValueId> operands,
                              std::vector<Body> bodies) {
    std::vector<TensorType> types;
    for (const ValueId operand : operands) {
        assert(operand.valid() && operand.value() < values_.size());
        types.push_back(TypeOf(operand));
    }
    FORNAX_ASSIGN_OR_RETURN(const std::vector<TensorType> results,
                            InferTypes(operation, types, bodies, sizes_));
    const NodeId id(nodes_.size());
    Node node;
    node.name = std::move(name);
    node.operation = std::move(operation);
    node.operands = std::move(operands);
    node.bodies = std::move(bodies);
    for (size_t i = 0; i < results.size(); ++i) {
        Value value;
        value.name = i == 0 ? node.name : node.name + "." + std::to_string(i);
        value.type = results[i];
        value.kind = ValueKind::kResult;
        value.producer = id;
        value.result_index = static_cast<uint32_t>(i);
        node.results.push_back(AddValue(std::move(value)));
    }
    nodes_.push_back(std::move(node));
    return id;
}

void Graph::AddOutput(std::string name, ValueId value) {
    outputs_.push_back({std::move(name), value});
}

const Node* Graph::Producer(ValueId id) const {
    const Value& value = (*this)[id];
    return value.kind == ValueKind::kResult ? &nodes_[value.producer.value()] : nullptr;
}

void Graph::MakeConstant(ValueId id, Tensor tensor) {
    Value& value = values_[id.value()];
    // A constant gets other bytes.
    assert(value.kind != ValueKind::kInput && value.type.element == tensor.element);
    value.kind = ValueKind::kConstant;
    value.producer = NodeId();
    value.constant = std::move(tensor);
}

std::vector<uint32_t> Graph::CountUses() const {
    std::vector<uint32_t> uses(values_.size(), 0);
    for (const Node& node : nodes_) {
        for (const ValueId operand : node.operands) {
            ++uses[operand.value()];
        }
    }
    for (const Output& output : outputs_) {
        ++uses[output.value.value()];
    }
    return uses;
}

namespace {

// Symbols in the results' sizes that are in no operand.
std::vector<Symbol> SizesToldBy(const Graph& graph, const Node& node) {
    std::vector<Symbol> told;
    const auto operand_has = [&](const Symbol& symbol) {
        return std::ranges::any_of(node.operands, [&](ValueId operand) {
            const std::span<const Expr> dims = graph.ShapeOf(operand).dims();
            return std::ranges::any_of(dims, [&](const Expr& dim) { return dim.Uses(symbol); });
        });
    };
    for (const ValueId result : node.results) {
        for (const Expr& dim : graph.ShapeOf(result).dims()) {
            for (const Symbol& symbol : dim.Symbols()) {
                if (!operand_has(symbol)) {
                    told.push_back(symbol);
                }
            }
        }
    }
    return told;
}

}  // namespace

std::set<Symbol> SizesToldWithin(const Graph& graph) {
    std::set<Symbol> told;
    for (const Node& node : graph.nodes()) {
        if (Is<op::HostCall>(node.operation)) {
            for (Symbol& symbol : SizesToldBy(graph, node)) {
                told.insert(std::move(symbol));
            }
        }
        for (const Body& body : node.bodies) {
            told.merge(SizesToldWithin(*body));
        }
    }
    return told;
}

void Graph::Compact() {
    std::vector<bool> live(values_.size(), false);
    for (const ValueId input : inputs_) {
        live[input.value()] = true;
    }
    for (const Output& output : outputs_) {
        live[output.value.value()] = true;
    }
    std::vector<bool> live_nodes(nodes_.size(), false);
    for (size_t n = nodes_.size(); n-- > 0;) {
        const Node& node = nodes_[n];
        // What the host computes may be used for its size alone, which no value shows.
        bool used = Is<op::WriteState>(node.operation) ||
                    (Is<op::HostCall>(node.operation) && !SizesToldBy(*this, node).empty());
        for (const ValueId result : node.results) {
            // A result that became a constant has no producer anymore.
            used = used ||
                   (live[result.value()] && values_[result.value()].kind == ValueKind::kResult);
        }
        if (!used) {
            continue;
        }
        live_nodes[n] = true;
        for (const ValueId operand : node.operands) {
            live[operand.value()] = true;
        }
        // A node keeps all of its results, used or not.
        for (const ValueId result : node.results) {
            live[result.value()] = true;
        }
    }
    std::vector<ValueId> renamed(values_.size());
    std::vector<Value> values;
    std::vector<NodeId> renamed_nodes(nodes_.size());
    std::vector<Node> nodes;
    for (size_t n = 0; n < nodes_.size(); ++n) {
        if (live_nodes[n]) {
            renamed_nodes[n] = NodeId(nodes.size());
            nodes.push_back(std::move(nodes_[n]));
        }
    }
    for (size_t v = 0; v < values_.size(); ++v) {
        if (!live[v]) {
            continue;
        }
        renamed[v] = ValueId(values.size());
        values.push_back(std::move(values_[v]));
        if (values.back().producer.valid()) {
            values.back().producer = renamed_nodes[values.back().producer.value()];
        }
    }
    for (Node& node : nodes) {
        for (ValueId& operand : node.operands) {
            operand = renamed[operand.value()];
        }
        for (ValueId& result : node.results) {
            result = renamed[result.value()];
        }
    }
    for (ValueId& input : inputs_) {
        input = renamed[input.value()];
    }
    for (Output& output : outputs_) {
        output.value = renamed[output.value.value()];
    }
    values_ = std::move(values);
    nodes_ = std::move(nodes);
}

}  // namespace fornax::graph
