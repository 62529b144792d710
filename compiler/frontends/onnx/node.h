// What the import function of one ONNX operator sees: the node's inputs, attributes and outputs.
//
// To add an operator: its function and its line in the table of an import_*.cpp. A function throws
// BuildError with a clause ("the axis 4 is not in -3..2"); the importer puts the file and the node
// in front.
#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/build/builder.h"

namespace fornax::onnx_frontend {

using graph::Builder;
using graph::ElementType;
using graph::Expr;
using graph::FailInvalid;
using graph::FailUnsupported;
using graph::Shape;
using graph::Tensor;
using graph::Val;
using graph::Vals;

// What a name of the model stands for: a tensor, a sequence of known length, or an optional that
// is empty.
struct Item {
    enum class Kind : uint8_t { kNothing, kTensor, kSequence };
    Kind kind = Kind::kNothing;
    Val tensor;
    std::shared_ptr<const std::vector<Item>> sequence;

    Item() = default;
    Item(Val value) : kind(Kind::kTensor), tensor(value) {}
    explicit Item(std::vector<Item> items)
        : kind(Kind::kSequence),
          sequence(std::make_shared<const std::vector<Item>>(std::move(items))) {}
};

class GraphImporter;

class Node {
  public:
    Node(GraphImporter& importer,
         const onnx::NodeProto& proto,
         int64_t version,
         std::vector<Item> inputs);

    const std::string& op() const { return proto_.op_type(); }
    // The version of the operator set of the node's domain.
    int64_t version() const { return version_; }
    GraphImporter& importer() { return importer_; }
    Builder& builder() { return builder_; }

    // Inputs. One may be left out, at the end or as an empty name; In() fails then, Opt() is a Val
    // of nothing.
    size_t input_count() const { return inputs_.size(); }
    bool Has(size_t index) const;
    Val In(size_t index) const;
    Val Opt(size_t index) const { return Has(index) ? In(index) : Val(); }
    Vals All() const;
    const Item& InItem(size_t index) const;
    const std::vector<Item>& InSequence(size_t index) const;
    // The elements of an input that must be known.
    std::vector<int64_t> Integers(size_t index, std::string_view what);
    int64_t Integer(size_t index, std::string_view what);
    std::vector<double> Numbers(size_t index, std::string_view what);
    std::vector<Expr> Sizes(size_t index, std::string_view what);

    // Attributes; those without a default must be there.
    bool HasAttribute(std::string_view name) const { return Find(name) != nullptr; }
    int64_t Int(std::string_view name) const;
    int64_t Int(std::string_view name, int64_t otherwise) const;
    double Float(std::string_view name, double otherwise) const;
    std::string Text(std::string_view name, std::string_view otherwise) const;
    std::vector<int64_t> Ints(std::string_view name) const;
    std::vector<double> Floats(std::string_view name) const;
    std::vector<std::string> Texts(std::string_view name) const;
    Tensor TensorAttribute(std::string_view name) const;
    const onnx::GraphProto& Subgraph(std::string_view name) const;
    const onnx::AttributeProto* Find(std::string_view name) const;
    // An attribute that is an element type.
    ElementType Type(std::string_view name, ElementType otherwise) const;

    // Outputs. Wants() says whether the model names this one.
    size_t output_count() const { return static_cast<size_t>(proto_.output_size()); }
    bool Wants(size_t index) const;
    void Out(Val value) { Out(0, Item(value)); }
    void Out(size_t index, Val value) { Out(index, Item(value)); }
    void Out(size_t index, Item item);
    const std::vector<Item>& outputs() const { return outputs_; }

  private:
    GraphImporter& importer_;
    Builder& builder_;
    const onnx::NodeProto& proto_;
    int64_t version_;
    std::vector<Item> inputs_;
    std::vector<Item> outputs_;
};

using ImportFunction = void (*)(Node& node);

struct OperatorEntry {
    std::string_view name;
    size_t required_inputs = 0;
    ImportFunction import = nullptr;
    int64_t first_version = 6;     // of the operator set, that the function knows
    std::string_view domain = {};  // empty: ONNX's own
};

// The entry of an operator, or null.
const OperatorEntry* FindOperator(std::string_view domain, std::string_view name);

}  // namespace fornax::onnx_frontend
