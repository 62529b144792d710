// What the import function of one ONNX operator sees: the node's inputs, attributes and outputs.
//
// Adding an operator means writing its function in an import_*.cpp and its line in
// operator_table.cpp. Errors that these functions return are clauses ("the axis ... is ..."): the
// importer puts the file and the node in front.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "compiler/legacy_graph/graph.h"

namespace fornax::legacy_onnx {

using ValuesByName = std::unordered_map<std::string, legacy_graph::ValueId>;

class NodeImporter {
  public:
    NodeImporter(const onnx::NodeProto& node,
                 std::string name,
                 int64_t opset,
                 legacy_graph::Graph& graph,
                 ValuesByName& values)
        : node_(node), name_(std::move(name)), opset_(opset), graph_(graph), values_(values) {}

    int64_t opset() const { return opset_; }
    const std::string& name() const { return name_; }
    legacy_graph::Graph& graph() { return graph_; }

    // Inputs. An input may be left out, at the end or as an empty name.
    size_t input_count() const { return static_cast<size_t>(node_.input_size()); }
    bool HasInput(size_t index) const;
    // Only for inputs that are there; CheckInputs() has found them all.
    legacy_graph::ValueId Input(size_t index) const;
    const legacy_graph::Shape& InputShape(size_t index) const { return ShapeOf(Input(index)); }
    const legacy_graph::Shape& ShapeOf(legacy_graph::ValueId id) const {
        return graph_[id].type.shape;
    }
    // Fails unless every named input is a value that exists and the first `required` are there.
    Status CheckInputs(size_t required) const;
    // The elements of an input that must be a constant; fails with a clause that calls it `what`.
    Result<std::vector<float>> ConstantFloats(size_t index, std::string_view what) const;
    Result<std::vector<int64_t>> ConstantIntegers(size_t index, std::string_view what) const;

    // Attributes; the operator's schema has already checked their names and types.
    const onnx::AttributeProto* Attribute(std::string_view name) const;
    int64_t Integer(std::string_view name, int64_t default_value) const;
    float Float(std::string_view name, float default_value) const;
    std::string Text(std::string_view name, std::string_view default_value) const;
    std::vector<int64_t> Integers(std::string_view name) const;

    // Adds a node of the graph compiler under this node's name.
    Result<legacy_graph::ValueId> Add(legacy_graph::Operator operation,
                                      std::vector<legacy_graph::ValueId> operands);
    Result<legacy_graph::ValueId> Reshape(legacy_graph::ValueId value,
                                          std::span<const int64_t> dims);
    Result<legacy_graph::ValueId> Scalar(float value);
    legacy_graph::ValueId IntegerConstant(std::vector<int64_t> values, legacy_graph::Shape shape);

    // Names the node's first output. Fails when another output is asked for: no operator here has
    // two.
    Status SetOutput(legacy_graph::ValueId value);
    Status SetOutput(Result<legacy_graph::ValueId> value);

  private:
    const onnx::NodeProto& node_;
    std::string name_;
    int64_t opset_;
    legacy_graph::Graph& graph_;
    ValuesByName& values_;
};

using ImportFunction = Status (*)(NodeImporter& node);

struct OperatorEntry {
    std::string_view name;
    int64_t first_opset;  // the versions of ONNX whose meaning of the operator the function knows
    int64_t last_opset;
    size_t required_inputs;
    ImportFunction import;
};

// The entry of an operator of the default domain, or null.
const OperatorEntry* FindOperator(std::string_view name);

// import_windows.cpp
Status ImportConv(NodeImporter& node);
Status ImportMaxPool(NodeImporter& node);
Status ImportAveragePool(NodeImporter& node);
// import_math.cpp
Status ImportGemm(NodeImporter& node);
Status ImportMatMul(NodeImporter& node);
Status ImportBatchNormalization(NodeImporter& node);
Status ImportLayerNormalization(NodeImporter& node);
Status ImportSoftmax(NodeImporter& node);
Status ImportGlobalAveragePool(NodeImporter& node);
Status ImportGlobalMaxPool(NodeImporter& node);
template <legacy_graph::op::ReduceKind kind>
Status ImportReduce(NodeImporter& node);
// import_elementwise.cpp
template <legacy_graph::UnaryFunction function>
Status ImportUnary(NodeImporter& node);
template <legacy_graph::BinaryFunction function>
Status ImportBinary(NodeImporter& node);
Status ImportClip(NodeImporter& node);
Status ImportLeakyRelu(NodeImporter& node);
Status ImportIdentity(NodeImporter& node);
// import_shapes.cpp
Status ImportConstant(NodeImporter& node);
Status ImportReshape(NodeImporter& node);
Status ImportFlatten(NodeImporter& node);
Status ImportSqueeze(NodeImporter& node);
Status ImportUnsqueeze(NodeImporter& node);
Status ImportTranspose(NodeImporter& node);
Status ImportConcat(NodeImporter& node);
Status ImportShape(NodeImporter& node);
Status ImportGather(NodeImporter& node);

}  // namespace fornax::legacy_onnx
