// Inputs, attributes and outputs of one node.
#include "compiler/frontends/onnx/node.h"

#include <fmt/format.h>

#include "compiler/frontends/onnx/graph_importer.h"
#include "compiler/frontends/onnx/tensor_proto.h"

namespace fornax::onnx_frontend {

Node::Node(GraphImporter& importer,
           const onnx::NodeProto& proto,
           int64_t version,
           std::vector<Item> inputs)
    : importer_(importer),
      builder_(importer.builder()),
      proto_(proto),
      version_(version),
      inputs_(std::move(inputs)),
      outputs_(static_cast<size_t>(proto.output_size())) {}

bool Node::Has(size_t index) const {
    return index < inputs_.size() && inputs_[index].kind != Item::Kind::kNothing;
}

const Item& Node::InItem(size_t index) const {
    if (index >= inputs_.size()) {
        FailInvalid(fmt::format("it lacks input {}", index));
    }
    return inputs_[index];
}

Val Node::In(size_t index) const {
    const Item& item = InItem(index);
    if (item.kind != Item::Kind::kTensor) {
        FailInvalid(fmt::format("its input {} is {}, not a tensor", index,
                                item.kind == Item::Kind::kNothing ? "left out" : "a sequence"));
    }
    return item.tensor;
}

Vals Node::All() const {
    Vals values;
    for (size_t i = 0; i < inputs_.size(); ++i) {
        values.push_back(In(i));
    }
    return values;
}

const std::vector<Item>& Node::InSequence(size_t index) const {
    const Item& item = InItem(index);
    if (item.kind != Item::Kind::kSequence) {
        FailInvalid(fmt::format("its input {} is not a sequence", index));
    }
    return *item.sequence;
}

std::vector<int64_t> Node::Integers(size_t index, std::string_view what) {
    return builder_.RequireIntegers(In(index), what);
}

int64_t Node::Integer(size_t index, std::string_view what) {
    return builder_.RequireInteger(In(index), what);
}

std::vector<double> Node::Numbers(size_t index, std::string_view what) {
    return builder_.RequireNumbers(In(index), what);
}

std::vector<Expr> Node::Sizes(size_t index, std::string_view what) {
    return builder_.RequireSizes(In(index), what);
}

const onnx::AttributeProto* Node::Find(std::string_view name) const {
    for (const onnx::AttributeProto& attribute : proto_.attribute()) {
        if (attribute.name() == name) {
            return attribute.ref_attr_name().empty()
                       ? &attribute
                       : importer_.FunctionAttribute(attribute.ref_attr_name());
        }
    }
    return nullptr;
}

namespace {

// The attribute if it is there and of the type; an attribute without a type is an old writer's.
const onnx::AttributeProto* Typed(const Node& node,
                                  std::string_view name,
                                  onnx::AttributeProto::AttributeType type) {
    const onnx::AttributeProto* attribute = node.Find(name);
    if (attribute != nullptr && attribute->type() != type &&
        attribute->type() != onnx::AttributeProto::UNDEFINED) {
        FailInvalid(fmt::format("its attribute {} is not of the type {}", name,
                                onnx::AttributeProto::AttributeType_Name(type)));
    }
    return attribute;
}

[[noreturn]] void Lacks(std::string_view name) {
    FailInvalid(fmt::format("it lacks the attribute {}", name));
}

}  // namespace

int64_t Node::Int(std::string_view name) const {
    const onnx::AttributeProto* attribute = Typed(*this, name, onnx::AttributeProto::INT);
    if (attribute == nullptr) {
        Lacks(name);
    }
    return attribute->i();
}

int64_t Node::Int(std::string_view name, int64_t otherwise) const {
    const onnx::AttributeProto* attribute = Typed(*this, name, onnx::AttributeProto::INT);
    return attribute == nullptr ? otherwise : attribute->i();
}

double Node::Float(std::string_view name, double otherwise) const {
    const onnx::AttributeProto* attribute = Typed(*this, name, onnx::AttributeProto::FLOAT);
    return attribute == nullptr ? otherwise : static_cast<double>(attribute->f());
}

std::string Node::Text(std::string_view name, std::string_view otherwise) const {
    const onnx::AttributeProto* attribute = Typed(*this, name, onnx::AttributeProto::STRING);
    return attribute == nullptr ? std::string(otherwise) : attribute->s();
}

std::vector<int64_t> Node::Ints(std::string_view name) const {
    const onnx::AttributeProto* attribute = Typed(*this, name, onnx::AttributeProto::INTS);
    return attribute == nullptr
               ? std::vector<int64_t>()
               : std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

std::vector<double> Node::Floats(std::string_view name) const {
    const onnx::AttributeProto* attribute = Typed(*this, name, onnx::AttributeProto::FLOATS);
    return attribute == nullptr
               ? std::vector<double>()
               : std::vector<double>(attribute->floats().begin(), attribute->floats().end());
}

std::vector<std::string> Node::Texts(std::string_view name) const {
    const onnx::AttributeProto* attribute = Typed(*this, name, onnx::AttributeProto::STRINGS);
    return attribute == nullptr
               ? std::vector<std::string>()
               : std::vector<std::string>(attribute->strings().begin(), attribute->strings().end());
}

Tensor Node::TensorAttribute(std::string_view name) const {
    const onnx::AttributeProto* attribute = Typed(*this, name, onnx::AttributeProto::TENSOR);
    if (attribute == nullptr) {
        Lacks(name);
    }
    return ReadTensor(attribute->t(), importer_.context().directory);
}

const onnx::GraphProto& Node::Subgraph(std::string_view name) const {
    const onnx::AttributeProto* attribute = Typed(*this, name, onnx::AttributeProto::GRAPH);
    if (attribute == nullptr) {
        Lacks(name);
    }
    return attribute->g();
}

ElementType Node::Type(std::string_view name, ElementType otherwise) const {
    const int64_t data_type = Int(name, 0);
    return data_type == 0 ? otherwise : ElementTypeOf(data_type);
}

bool Node::Wants(size_t index) const {
    return index < output_count() && !proto_.output(static_cast<int>(index)).empty();
}

void Node::Out(size_t index, Item item) {
    if (index < outputs_.size()) {
        outputs_[index] = std::move(item);
    }
}

}  // namespace fornax::onnx_frontend
