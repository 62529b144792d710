// The state of an export: what values are called, and how operators are added.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/export/exported_model.h"

namespace fornax::graph {

using Names = std::vector<std::string>;
using Sizes = std::vector<Expr>;

class Lowering {
  public:
    Lowering(const Graph& graph, const ExportOptions& options);
    // Throws BuildError.
    ExportedModel Run();
    const Node* node() const { return node_; }

    // --- For the families of primitives ----------------------------------------------------------

    const TensorType& TypeOf(ValueId value) const { return graph_.TypeOf(value); }
    Sizes DimsOf(ValueId value) const { return DimsOf(TypeOf(value).shape); }
    static Sizes DimsOf(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }
    // The name of a value that was computed; constants are written when they are first asked for.
    std::string NameOf(ValueId value);

    using Attributes = std::map<std::string, ExportedNode::Attribute>;
    std::string Emit(std::string_view op, Names inputs, Attributes attributes = {});
    // Emits an operator that has two results.
    Names EmitTwo(std::string_view op, Names inputs, Attributes attributes = {});
    std::string Ints(const std::vector<int64_t>& values);
    // The same of sizes, which are computed when the model runs if they hold symbols.
    std::string IntsOf(const Sizes& sizes);
    // A size as a number without dimensions.
    std::string Size(const Expr& size);
    // A number without dimensions.
    std::string Number(ElementType element, double value);
    std::string Integer(ElementType element, int64_t value);
    std::string Weight(Tensor tensor);
    // Conversion by ONNX's rules.
    std::string CastTo(const std::string& name, ElementType from, ElementType to);
    // a where the condition holds, else b, of a type that Where may lack.
    std::string Choose(const std::string& condition,
                       const std::string& a,
                       const std::string& b,
                       ElementType element);
    std::string ReshapeTo(const std::string& name, const Sizes& dims);
    std::string ExpandTo(const std::string& name, const Sizes& dims);

  private:
    bool IsKnown(ValueId value);
    // Whether a known value is computed in the file nevertheless, as it would only take space.
    bool IsCheap(const Node& node) const;
    // Whether sizes of the node hold symbols.
    bool IsOpen(const Node& node) const;
    std::string OpenSizes(const Sizes& sizes, bool is_number);
    void AddSymbols(const ExportedPort& input);
    void AddConditions();
    std::string ScalarWeight(ElementType element, const Scalar& value, std::string key);
    const Tensor& Evaluate(ValueId value, std::map<uint32_t, Tensor>& memo);
    std::string UniqueName(std::string wanted);
    std::string ExternalName(const std::string& name);
    void LowerNode(const Node& node);

    const Graph& graph_;
    const ExportOptions& options_;
    ExportedModel model_;
    std::map<uint32_t, std::string> names_;  // by value
    std::map<uint32_t, bool> known_;
    std::map<uint32_t, Tensor> constants_;  // inputs that are weights
    std::map<std::string, std::string> casts_, numbers_;
    std::set<std::string> taken_;
    std::map<std::string, std::string> states_;  // their value now
    std::map<std::string, TensorType> state_types_;
    std::vector<std::string> state_order_;
    const Node* node_ = nullptr;  // that is being lowered
    size_t next_ = 0;
};

// The type that ONNX's arithmetic is asked for, so that results are those of `element` when they
// are cast back: f32, f64, i64 or bool.
ElementType WorkType(ElementType element);

// Each gives the names of the node's results.
Names LowerMap(Lowering& to, const Node& node, const op::Map& map);
Names LowerCast(Lowering& to, const Node& node, const op::Cast& cast);
Names LowerReduce(Lowering& to, const Node& node, const op::Reduce& reduce);
Names LowerArgReduce(Lowering& to, const Node& node, const op::ArgReduce& reduce);
Names LowerScan(Lowering& to, const Node& node, const op::Scan& scan);
Names LowerSort(Lowering& to, const Node& node, const op::Sort& sort);
Names LowerContract(Lowering& to, const Node& node, const op::Contract& contract);
Names LowerSlice(Lowering& to, const Node& node, const op::Slice& slice);
Names LowerPad(Lowering& to, const Node& node, const op::Pad& pad);
Names LowerWindow(Lowering& to, const Node& node, const op::Window& window);
Names LowerGather(Lowering& to, const Node& node, const op::Gather& gather);
Names LowerScatter(Lowering& to, const Node& node, const op::Scatter& scatter);
Names LowerIota(Lowering& to, const Node& node, const op::Iota& iota);

}  // namespace fornax::graph
