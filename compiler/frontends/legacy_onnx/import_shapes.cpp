// Operators that only move data, and computations with shapes, which are done here and now.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/frontends/legacy_onnx/node_importer.h"
#include "compiler/frontends/legacy_onnx/tensor_proto.h"

namespace fornax::legacy_onnx {
namespace {

using legacy_graph::DataType;
using legacy_graph::Shape;
using legacy_graph::ValueId;

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

std::vector<int64_t> ToDims(const Shape& shape) {
    return {shape.dims().begin(), shape.dims().end()};
}

bool IsInteger(NodeImporter& node, size_t input) {
    return node.graph()[node.Input(input)].type.type == DataType::kI64;
}

// The axes of Squeeze and Unsqueeze: an attribute before version 13, an input since.
Result<std::vector<int64_t>> ReadAxes(NodeImporter& node) {
    if (node.opset() >= 13 && node.HasInput(1)) {
        return node.ConstantIntegers(1, "axes");
    }
    return node.Integers("axes");
}

}  // namespace

Status ImportConstant(NodeImporter& node) {
    if (const onnx::AttributeProto* value = node.Attribute("value")) {
        FORNAX_ASSIGN_OR_RETURN(Shape shape, ReadShape(value->t()));
        if (value->t().data_type() == onnx::TensorProto::FLOAT) {
            FORNAX_ASSIGN_OR_RETURN(const std::vector<float> floats, ReadFloats(value->t()));
            return node.SetOutput(node.graph().AddFloats(node.name(), std::move(shape), floats));
        }
        FORNAX_ASSIGN_OR_RETURN(std::vector<int64_t> integers, ReadIntegers(value->t()));
        return node.SetOutput(node.IntegerConstant(std::move(integers), std::move(shape)));
    }
    if (node.Attribute("value_float") != nullptr) {
        return node.SetOutput(node.Scalar(node.Float("value_float", 0)));
    }
    if (node.Attribute("value_int") != nullptr) {
        return node.SetOutput(node.IntegerConstant({node.Integer("value_int", 0)}, {}));
    }
    if (node.Attribute("value_ints") != nullptr) {
        std::vector<int64_t> integers = node.Integers("value_ints");
        FORNAX_ASSIGN_OR_RETURN(Shape shape,
                                Shape::Make(std::array{static_cast<int64_t>(integers.size())}));
        return node.SetOutput(node.IntegerConstant(std::move(integers), std::move(shape)));
    }
    return Error{ErrorCode::kUnsupported, "its value is not a dense tensor or a number"};
}

Status ImportReshape(NodeImporter& node) {
    FORNAX_ASSIGN_OR_RETURN(std::vector<int64_t> dims, node.ConstantIntegers(1, "shape"));
    const Shape shape = node.InputShape(0);
    int64_t known = 1;
    size_t unknown = dims.size();
    for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == 0 && node.Integer("allowzero", 0) == 0) {
            if (i >= shape.rank()) {
                return Invalid(
                    fmt::format("its shape copies dimension {} of {}", i, shape.ToString()));
            }
            dims[i] = shape[i];
        }
        if (dims[i] == -1) {
            if (unknown != dims.size()) {
                return Invalid("its shape has two dimensions of -1");
            }
            unknown = i;
        } else if (dims[i] < 1 || dims[i] > Shape::kMaxElements / known) {
            return Invalid(fmt::format("its shape [{}] has a dimension that is not possible",
                                       fmt::join(dims, ",")));
        } else {
            known *= dims[i];
        }
    }
    if (unknown != dims.size()) {
        dims[unknown] = shape.elements() / known;
    }
    return node.SetOutput(node.Reshape(node.Input(0), dims));
}

Status ImportFlatten(NodeImporter& node) {
    const Shape& shape = node.InputShape(0);
    int64_t axis = node.Integer("axis", 1);
    const auto rank = static_cast<int64_t>(shape.rank());
    if (axis < -rank || axis > rank) {
        return Invalid(fmt::format("its axis {} is outside a tensor of rank {}", axis, rank));
    }
    axis = axis < 0 ? axis + rank : axis;
    return node.SetOutput(node.Reshape(
        node.Input(0), std::array<int64_t, 2>{shape.ElementsBetween(0, axis),
                                              shape.ElementsBetween(axis, shape.rank())}));
}

Status ImportSqueeze(NodeImporter& node) {
    const Shape& shape = node.InputShape(0);
    FORNAX_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReadAxes(node));
    std::vector<bool> removed(shape.rank(), false);
    for (size_t i = 0; i < shape.rank(); ++i) {
        removed[i] = axes.empty() && shape[i] == 1;
    }
    for (int64_t axis : axes) {
        FORNAX_ASSIGN_OR_RETURN(const uint32_t resolved,
                                legacy_graph::ResolveAxis(axis, shape.rank()));
        if (shape[resolved] != 1) {
            return Invalid(
                fmt::format("its axis {} of {} is not of size 1", axis, shape.ToString()));
        }
        removed[resolved] = true;
    }
    std::vector<int64_t> dims;
    for (size_t i = 0; i < shape.rank(); ++i) {
        if (!removed[i]) {
            dims.push_back(shape[i]);
        }
    }
    return node.SetOutput(node.Reshape(node.Input(0), dims));
}

Status ImportUnsqueeze(NodeImporter& node) {
    const Shape& shape = node.InputShape(0);
    FORNAX_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReadAxes(node));
    const size_t rank = shape.rank() + axes.size();
    std::vector<int64_t> dims(rank, 0);
    for (int64_t axis : axes) {
        FORNAX_ASSIGN_OR_RETURN(const uint32_t resolved, legacy_graph::ResolveAxis(axis, rank));
        if (dims[resolved] != 0) {
            return Invalid(fmt::format("its axis {} repeats", axis));
        }
        dims[resolved] = 1;
    }
    size_t next = 0;
    for (int64_t& dim : dims) {
        if (dim == 0) {
            dim = shape[next++];
        }
    }
    return node.SetOutput(node.Reshape(node.Input(0), dims));
}

Status ImportTranspose(NodeImporter& node) {
    const auto rank = static_cast<uint32_t>(node.InputShape(0).rank());
    legacy_graph::op::Transpose transpose;
    for (int64_t axis : node.Integers("perm")) {
        FORNAX_ASSIGN_OR_RETURN(const uint32_t resolved, legacy_graph::ResolveAxis(axis, rank));
        transpose.permutation.push_back(resolved);
    }
    if (node.Attribute("perm") == nullptr) {
        for (uint32_t axis = rank; axis-- > 0;) {
            transpose.permutation.push_back(axis);
        }
    }
    return node.SetOutput(node.Add(std::move(transpose), {node.Input(0)}));
}

Status ImportConcat(NodeImporter& node) {
    const Shape& first = node.InputShape(0);
    FORNAX_ASSIGN_OR_RETURN(const uint32_t axis,
                            legacy_graph::ResolveAxis(node.Integer("axis", 1), first.rank()));
    for (size_t i = 0; i < node.input_count(); ++i) {
        if (!node.HasInput(i)) {
            return Invalid(fmt::format("its input {} is missing", i));
        }
    }
    if (IsInteger(node, 0) && first.rank() == 1) {
        std::vector<int64_t> joined;
        for (size_t i = 0; i < node.input_count(); ++i) {
            FORNAX_ASSIGN_OR_RETURN(const std::vector<int64_t> part,
                                    node.ConstantIntegers(i, "operand"));
            joined.insert(joined.end(), part.begin(), part.end());
        }
        FORNAX_ASSIGN_OR_RETURN(Shape shape,
                                Shape::Make(std::array{static_cast<int64_t>(joined.size())}));
        return node.SetOutput(node.IntegerConstant(std::move(joined), std::move(shape)));
    }
    std::vector<ValueId> operands;
    for (size_t i = 0; i < node.input_count(); ++i) {
        operands.push_back(node.Input(i));
    }
    return node.SetOutput(node.Add(legacy_graph::op::Concat{axis}, std::move(operands)));
}

Status ImportShape(NodeImporter& node) {
    std::vector<int64_t> dims = ToDims(node.InputShape(0));
    // Since version 15 a range of the dimensions may be asked for; bounds clamp.
    const auto rank = static_cast<int64_t>(dims.size());
    auto clamp = [rank](int64_t index) {
        return std::clamp(index < 0 ? index + rank : index, int64_t{0}, rank);
    };
    const int64_t start = clamp(node.Integer("start", 0));
    const int64_t end = clamp(node.Integer("end", rank));
    if (start >= end) {
        return Error{ErrorCode::kUnsupported, "its result is empty"};
    }
    std::vector<int64_t> range(dims.begin() + start, dims.begin() + end);
    FORNAX_ASSIGN_OR_RETURN(Shape shape,
                            Shape::Make(std::array{static_cast<int64_t>(range.size())}));
    return node.SetOutput(node.IntegerConstant(std::move(range), std::move(shape)));
}

// Only picks from vectors of integers, as computations with shapes do.
Status ImportGather(NodeImporter& node) {
    FORNAX_ASSIGN_OR_RETURN(const std::vector<int64_t> data, node.ConstantIntegers(0, "data"));
    FORNAX_ASSIGN_OR_RETURN(const std::vector<int64_t> indices,
                            node.ConstantIntegers(1, "indices"));
    if (node.InputShape(0).rank() != 1) {
        return Error{ErrorCode::kUnsupported, fmt::format("its data of shape {} are not a vector",
                                                          node.InputShape(0).ToString())};
    }
    std::vector<int64_t> picked;
    for (int64_t index : indices) {
        FORNAX_ASSIGN_OR_RETURN(const uint32_t position,
                                legacy_graph::ResolveAxis(index, data.size()));
        picked.push_back(data[position]);
    }
    return node.SetOutput(node.IntegerConstant(std::move(picked), node.InputShape(1)));
}

}  // namespace fornax::legacy_onnx
