// Access to one node's inputs, attributes and outputs.
#include "compiler/frontends/legacy_onnx/node_importer.h"

#include <cstring>

#include <fmt/format.h>

namespace fornax::legacy_onnx {

using legacy_graph::ValueId;

bool NodeImporter::HasInput(size_t index) const {
    return index < input_count() && !node_.input(static_cast<int>(index)).empty();
}

ValueId NodeImporter::Input(size_t index) const {
    return values_.at(node_.input(static_cast<int>(index)));
}

Status NodeImporter::CheckInputs(size_t required) const {
    for (size_t i = 0; i < required; ++i) {
        if (!HasInput(i)) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("it has no input {}, which it needs", i)};
        }
    }
    for (const std::string& input : node_.input()) {
        if (!input.empty() && !values_.contains(input)) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("its input {} is computed by no node before it", input)};
        }
    }
    return OkStatus();
}

Result<std::vector<float>> NodeImporter::ConstantFloats(size_t index, std::string_view what) const {
    const legacy_graph::Value& value = graph_[Input(index)];
    if (value.kind != legacy_graph::ValueKind::kConstant ||
        value.type.type != legacy_graph::DataType::kF32) {
        return Error{ErrorCode::kUnsupported, fmt::format("its {} is not a constant of f32", what)};
    }
    const std::span<const float> floats = legacy_graph::Floats(value);
    return std::vector<float>(floats.begin(), floats.end());
}

Result<std::vector<int64_t>> NodeImporter::ConstantIntegers(size_t index,
                                                            std::string_view what) const {
    const legacy_graph::Value& value = graph_[Input(index)];
    if (value.kind != legacy_graph::ValueKind::kConstant ||
        value.type.type != legacy_graph::DataType::kI64) {
        return Error{ErrorCode::kUnsupported, fmt::format("its {} is not a constant of i64", what)};
    }
    const std::span<const int64_t> integers = legacy_graph::Integers(value);
    return std::vector<int64_t>(integers.begin(), integers.end());
}

const onnx::AttributeProto* NodeImporter::Attribute(std::string_view name) const {
    for (const onnx::AttributeProto& attribute : node_.attribute()) {
        if (attribute.name() == name) {
            return &attribute;
        }
    }
    return nullptr;
}

int64_t NodeImporter::Integer(std::string_view name, int64_t default_value) const {
    const onnx::AttributeProto* attribute = Attribute(name);
    return attribute != nullptr ? attribute->i() : default_value;
}

float NodeImporter::Float(std::string_view name, float default_value) const {
    const onnx::AttributeProto* attribute = Attribute(name);
    return attribute != nullptr ? attribute->f() : default_value;
}

std::string NodeImporter::Text(std::string_view name, std::string_view default_value) const {
    const onnx::AttributeProto* attribute = Attribute(name);
    return attribute != nullptr ? attribute->s() : std::string(default_value);
}

std::vector<int64_t> NodeImporter::Integers(std::string_view name) const {
    const onnx::AttributeProto* attribute = Attribute(name);
    if (attribute == nullptr) {
        return {};
    }
    return {attribute->ints().begin(), attribute->ints().end()};
}

Result<ValueId> NodeImporter::Add(legacy_graph::Operator operation, std::vector<ValueId> operands) {
    return graph_.AddNode(name_, std::move(operation), std::move(operands));
}

Result<ValueId> NodeImporter::Reshape(ValueId value, std::span<const int64_t> dims) {
    FORNAX_ASSIGN_OR_RETURN(legacy_graph::Shape shape, legacy_graph::Shape::Make(dims));
    const legacy_graph::Value& operand = graph_[value];
    // Here and now for constants, since they may be shapes that later nodes are imported with.
    if (operand.kind == legacy_graph::ValueKind::kConstant &&
        operand.type.shape.elements() == shape.elements()) {
        return graph_.AddConstant(name_, {operand.type.type, std::move(shape)}, *operand.data);
    }
    return Add(legacy_graph::op::Reshape{std::move(shape)}, {value});
}

Result<ValueId> NodeImporter::Scalar(float value) {
    return graph_.AddFloats(name_ + ".scalar", {}, std::span(&value, 1));
}

ValueId NodeImporter::IntegerConstant(std::vector<int64_t> values, legacy_graph::Shape shape) {
    std::vector<uint8_t> bytes(values.size() * sizeof(int64_t));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return graph_.AddConstant(name_, {legacy_graph::DataType::kI64, std::move(shape)},
                              std::move(bytes));
}

Status NodeImporter::SetOutput(ValueId value) {
    if (node_.output_size() < 1) {
        return Error{ErrorCode::kInvalidArgument, "it has no output"};
    }
    for (int i = 1; i < node_.output_size(); ++i) {
        if (!node_.output(i).empty()) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("its output {} is not supported", node_.output(i))};
        }
    }
    if (!values_.emplace(node_.output(0), value).second) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("its output {} has the name of an earlier value", node_.output(0))};
    }
    // A value that several names stand for keeps the first.
    if (graph_.Producer(value) != nullptr && graph_[value].name == name_) {
        graph_.Rename(value, node_.output(0));
    }
    return OkStatus();
}

Status NodeImporter::SetOutput(Result<ValueId> value) {
    if (!value.ok()) {
        return std::move(value).error();
    }
    return SetOutput(*value);
}

}  // namespace fornax::legacy_onnx
