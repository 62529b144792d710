// The graph IR: typed values, and nodes in an order in which every operand comes before its uses.
//
// A frontend builds a Graph through build/, passes rewrite it, schedule/ cuts it into kernels.
// Values and nodes live in vectors and are named by ids that stay valid until Compact(). Nothing is
// keyed by address, so the same input always gives the same output. A Graph is a value: copies
// share only the bytes of constants and the bodies of nodes, which never change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/strong_id.h"
#include "compiler/graph/ir/operation.h"
#include "compiler/graph/ir/sizes.h"
#include "compiler/graph/ir/types.h"

namespace fornax::graph {

using ValueId = StrongId<struct GraphValueTag>;
using NodeId = StrongId<struct GraphNodeTag>;

class Graph;
using Body = std::shared_ptr<const Graph>;

enum class ValueKind : uint8_t { kInput, kConstant, kResult };

struct Value {
    std::string name;
    TensorType type;
    ValueKind kind = ValueKind::kInput;
    NodeId producer;            // of a result
    uint32_t result_index = 0;  // of a result
    Tensor constant;            // of a constant; its dims are type.shape's
};

struct Node {
    std::string name;  // for messages and tables; need not be unique
    Operation operation;
    std::vector<ValueId> operands;
    std::vector<ValueId> results;
    std::vector<Body> bodies;  // of Composite, If and Loop
};

struct Output {
    std::string name;
    ValueId value;
};

class Graph {
  public:
    explicit Graph(std::string name = "graph") : name_(std::move(name)) {}

    ValueId AddInput(std::string name, TensorType type);
    ValueId AddConstant(std::string name, Tensor tensor);
    // Infers the results' types. The error is a clause ("the operands' shapes are ... and ...").
    Result<NodeId> AddNode(std::string name,
                           Operation operation,
                           std::vector<ValueId> operands,
                           std::vector<Body> bodies = {});
    void AddOutput(std::string name, ValueId value);

    const std::string& name() const { return name_; }
    std::span<const Value> values() const { return values_; }
    std::span<const Node> nodes() const { return nodes_; }
    std::span<const ValueId> inputs() const { return inputs_; }
    std::span<const Output> outputs() const { return outputs_; }
    const Value& operator[](ValueId id) const { return values_[id.value()]; }
    const Node& operator[](NodeId id) const { return nodes_[id.value()]; }
    const TensorType& TypeOf(ValueId id) const { return values_[id.value()].type; }
    const Shape& ShapeOf(ValueId id) const { return values_[id.value()].type.shape; }
    // The node that computes a value, or null for an input or a constant.
    const Node* Producer(ValueId id) const;
    // The node that computes a value, if it holds a T, and what it holds.
    template <typename T>
    const T* ProducerAs(ValueId id) const {
        const Node* node = Producer(id);
        return node == nullptr ? nullptr : std::get_if<T>(&node->operation);
    }

    // What the symbols in shapes stand for, and what is assumed of them.
    const SizeFacts& sizes() const { return sizes_; }
    SizeFacts& sizes() { return sizes_; }

    // For passes. A pass may change a node's operation and operands, as long as operands still come
    // first and the results keep their types, and may redirect outputs; Verify() checks this.
    Node& MutableNode(NodeId id) { return nodes_[id.value()]; }
    Output& MutableOutput(size_t index) { return outputs_[index]; }
    void Rename(ValueId id, std::string name) { values_[id.value()].name = std::move(name); }
    // Turns a result into a constant of its type; its node is dead if no other result is used.
    void MakeConstant(ValueId id, Tensor tensor);
    // How often each value is used, by nodes and as an output, by value index.
    std::vector<uint32_t> CountUses() const;
    // Removes nodes that no output and no write of state depends on, and constants that are not
    // used, and renumbers. Inputs stay, used or not: they are the graph's interface.
    void Compact();

  private:
    ValueId AddValue(Value value);

    std::string name_;
    std::vector<Value> values_;
    std::vector<Node> nodes_;
    std::vector<ValueId> inputs_;
    std::vector<Output> outputs_;
    SizeFacts sizes_;
};

// The types of a node's results. Compares sizes by `sizes`, which notes what it had to assume. The
// error is a clause.
Result<std::vector<TensorType>> InferTypes(const Operation& operation,
                                           std::span<const TensorType> operands,
                                           std::span<const Body> bodies,
                                           SizeFacts& sizes);

// Sizes that host calls of the graph and of its bodies tell and no operand has: symbols that mean
// nothing outside of the graph.
std::set<Symbol> SizesToldWithin(const Graph& graph);

// Checks what every pass must keep: ids in range, operands before uses, one producer a value,
// constants of the right size, and result types as inferred. The error is a sentence that names the
// node.
Status Verify(const Graph& graph);

// The graph as text and back; text.h describes the form.
std::string ToText(const Graph& graph);
Result<Graph> ParseGraph(std::string_view text);

}  // namespace fornax::graph
