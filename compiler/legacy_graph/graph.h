// The graph IR: typed values, and nodes in an order in which every operand comes before its uses.
//
// A frontend builds a Graph, the passes in passes/ rewrite it, lowering/ turns it into a Plan.
// Values and nodes live in vectors of the graph and are named by ids that stay valid until
// Compact(). Nothing is keyed by address, so the same input always gives the same output. A Graph
// is a value: copyable, without hidden sharing, and safe to read from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/strong_id.h"
#include "compiler/legacy_graph/operators.h"
#include "compiler/legacy_graph/printable.h"
#include "compiler/legacy_graph/types.h"

namespace fornax::legacy_graph {

using ValueId = StrongId<struct ValueTag>;
using NodeId = StrongId<struct NodeTag>;

enum class ValueKind : uint8_t { kInput, kConstant, kNodeResult };

// The bytes of a constant, shared between copies of a graph and never changed.
using Bytes = std::shared_ptr<const std::vector<uint8_t>>;

struct Value {
    std::string name;
    TensorType type;
    ValueKind kind = ValueKind::kInput;
    NodeId producer;  // of a node's result
    Bytes data;       // of a constant; type.size_bytes() bytes, little-endian
};

struct Node {
    std::string name;  // for messages and tables; need not be unique
    Operator operation;
    std::vector<ValueId> operands;
    ValueId result;
};

struct Output {
    std::string name;
    ValueId value;
};

class Graph {
  public:
    // All names of a graph are made printable.
    explicit Graph(std::string_view name = "graph") : name_(Printable(name)) {}

    ValueId AddInput(std::string name, TensorType type);
    // `data` must hold type.size_bytes() bytes.
    ValueId AddConstant(std::string name, TensorType type, std::vector<uint8_t> data);
    ValueId AddFloats(std::string name, Shape shape, std::span<const float> values);
    // Infers the result's type; fails with InferType's clause when the operands do not fit.
    Result<ValueId> AddNode(std::string name, Operator operation, std::vector<ValueId> operands);
    void AddOutput(std::string name, ValueId value);

    const std::string& name() const { return name_; }
    std::span<const Value> values() const { return values_; }
    std::span<const Node> nodes() const { return nodes_; }
    std::span<const ValueId> inputs() const { return inputs_; }
    std::span<const Output> outputs() const { return outputs_; }

    const Value& operator[](ValueId id) const { return values_[id.value()]; }
    const Node& operator[](NodeId id) const { return nodes_[id.value()]; }
    // The node that computes a value, or null for an input or a constant.
    const Node* Producer(ValueId id) const;

    // For passes. A pass may change a node's operator and operands, as long as operands still come
    // first and its result keeps its type, and it may redirect outputs; Verify() checks this.
    Node& MutableNode(NodeId id) { return nodes_[id.value()]; }
    void Rename(ValueId id, std::string_view name) { values_[id.value()].name = Printable(name); }
    Output& MutableOutput(size_t index) { return outputs_[index]; }
    // Turns a node's result into a constant; the node is dead from then on.
    void MakeConstant(ValueId id, std::vector<uint8_t> data);
    // How often each value is used, by nodes and as an output, by value index.
    std::vector<uint32_t> CountUses() const;
    // Removes every node that no output depends on and every constant that is not used, and
    // renumbers. Inputs stay, used or not: they are the graph's interface.
    void Compact();

  private:
    ValueId AddValue(Value value);

    std::string name_;
    std::vector<Value> values_;
    std::vector<Node> nodes_;
    std::vector<ValueId> inputs_;
    std::vector<Output> outputs_;
};

// The values of an f32 constant, or of an i64 constant.
std::span<const float> Floats(const Value& value);
std::span<const int64_t> Integers(const Value& value);

// Checks what every pass must keep: ids in range, operands before uses, one producer a value,
// constants of the right size, and result types as inferred. An error names the node and the rule.
Status Verify(const Graph& graph);

// The graph as text, one line a value, for tests and `--explain`:
//     %0 image: f32[2x1x8x8] = input
//     %1 weight: f32[4x1x3x3] = constant
//     %2 conv1: f32[2x4x8x8] = conv(%0, %1) window={...} group=1
//     return probabilities=%2
std::string ToText(const Graph& graph);

}  // namespace fornax::legacy_graph
