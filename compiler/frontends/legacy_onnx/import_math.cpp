// Matrix products, normalisations and reductions, in terms of the graph compiler's operators.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "compiler/frontends/legacy_onnx/node_importer.h"

namespace fornax::legacy_onnx {
namespace {

using legacy_graph::BinaryFunction;
using legacy_graph::Shape;
using legacy_graph::UnaryFunction;
using legacy_graph::ValueId;
using legacy_graph::op::ReduceKind;

Error Invalid(std::string message) {
    return {ErrorCode::kInvalidArgument, std::move(message)};
}

Result<ValueId> Combine(NodeImporter& node, BinaryFunction function, ValueId a, ValueId b) {
    return node.Add(legacy_graph::op::Binary{function, {}}, {a, b});
}

Result<ValueId> Scale(NodeImporter& node, ValueId value, float factor) {
    if (factor == 1) {
        return value;
    }
    FORNAX_ASSIGN_OR_RETURN(const ValueId scalar, node.Scalar(factor));
    return Combine(node, BinaryFunction::kMul, value, scalar);
}

// A matrix, transposed if asked for.
Result<ValueId> Matrix(NodeImporter& node, size_t input, bool transposed) {
    const ValueId value = node.Input(input);
    if (node.ShapeOf(value).rank() != 2) {
        return Invalid(fmt::format("its input {} of shape {} is not a matrix", input,
                                   node.ShapeOf(value).ToString()));
    }
    if (!transposed) {
        return value;
    }
    return node.Add(legacy_graph::op::Transpose{{1, 0}}, {value});
}

// Reduces the given axes to dimensions of 1, run of neighbours by run of neighbours.
Result<ValueId> ReduceAxes(NodeImporter& node,
                           ReduceKind kind,
                           ValueId value,
                           std::vector<uint32_t> axes) {
    std::sort(axes.begin(), axes.end());
    if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
        return Invalid("its axes repeat");
    }
    for (size_t first = 0; first < axes.size();) {
        size_t last = first + 1;
        while (last < axes.size() && axes[last] == axes[last - 1] + 1) {
            ++last;
        }
        FORNAX_ASSIGN_OR_RETURN(
            value, node.Add(legacy_graph::op::Reduce{kind, axes[first],
                                                     static_cast<uint32_t>(last - first)},
                            {value}));
        first = last;
    }
    return value;
}

Status ImportGlobalPool(NodeImporter& node, ReduceKind kind) {
    const size_t rank = node.InputShape(0).rank();
    if (rank < 3) {
        return Invalid(
            fmt::format("its input {} has no spatial axis", node.InputShape(0).ToString()));
    }
    return node.SetOutput(node.Add(
        legacy_graph::op::Reduce{kind, 2, static_cast<uint32_t>(rank - 2)}, {node.Input(0)}));
}

}  // namespace

// y = alpha * a * b + beta * c
Status ImportGemm(NodeImporter& node) {
    FORNAX_ASSIGN_OR_RETURN(const ValueId a, Matrix(node, 0, node.Integer("transA", 0) != 0));
    FORNAX_ASSIGN_OR_RETURN(const ValueId b, Matrix(node, 1, node.Integer("transB", 0) != 0));
    FORNAX_ASSIGN_OR_RETURN(ValueId y, node.Add(legacy_graph::op::MatMul{}, {a, b}));
    FORNAX_ASSIGN_OR_RETURN(y, Scale(node, y, node.Float("alpha", 1)));
    if (node.HasInput(2)) {
        FORNAX_ASSIGN_OR_RETURN(const ValueId c, Scale(node, node.Input(2), node.Float("beta", 1)));
        const Shape product = node.ShapeOf(y);
        FORNAX_ASSIGN_OR_RETURN(y, Combine(node, BinaryFunction::kAdd, y, c));
        if (!(node.ShapeOf(y) == product)) {
            return Invalid(fmt::format("its C of shape {} does not broadcast to {}",
                                       node.InputShape(2).ToString(), product.ToString()));
        }
    }
    return node.SetOutput(y);
}

// A vector on the left is a row, on the right a column; its dimension is dropped from the result.
Status ImportMatMul(NodeImporter& node) {
    ValueId a = node.Input(0), b = node.Input(1);
    const bool row = node.ShapeOf(a).rank() == 1, column = node.ShapeOf(b).rank() == 1;
    if (row) {
        FORNAX_ASSIGN_OR_RETURN(a, node.Reshape(a, std::array<int64_t, 2>{1, node.ShapeOf(a)[0]}));
    }
    if (column) {
        FORNAX_ASSIGN_OR_RETURN(b, node.Reshape(b, std::array<int64_t, 2>{node.ShapeOf(b)[0], 1}));
    }
    FORNAX_ASSIGN_OR_RETURN(const ValueId y, node.Add(legacy_graph::op::MatMul{}, {a, b}));
    if (!row && !column) {
        return node.SetOutput(y);
    }
    const Shape& shape = node.ShapeOf(y);
    std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end() - 2);
    if (!row) {
        dims.push_back(shape[shape.rank() - 2]);
    }
    if (!column) {
        dims.push_back(shape[shape.rank() - 1]);
    }
    return node.SetOutput(node.Reshape(y, dims));
}

// In inference a factor and a summand per channel.
Status ImportBatchNormalization(NodeImporter& node) {
    if (node.Integer("training_mode", 0) != 0) {
        return Error{ErrorCode::kUnsupported, "its training mode is not supported"};
    }
    const Shape& x = node.InputShape(0);
    if (x.rank() < 2) {
        return Invalid(fmt::format("its input {} has no channels", x.ToString()));
    }
    FORNAX_ASSIGN_OR_RETURN(std::vector<float> factor, node.ConstantFloats(1, "scale"));
    FORNAX_ASSIGN_OR_RETURN(std::vector<float> summand, node.ConstantFloats(2, "bias"));
    FORNAX_ASSIGN_OR_RETURN(const std::vector<float> mean, node.ConstantFloats(3, "mean"));
    FORNAX_ASSIGN_OR_RETURN(const std::vector<float> variance, node.ConstantFloats(4, "variance"));
    for (size_t size : {factor.size(), summand.size(), mean.size(), variance.size()}) {
        if (size != x[1]) {
            return Invalid(
                fmt::format("one of its parameters has {} elements for {} channels", size, x[1]));
        }
    }
    const float epsilon = node.Float("epsilon", 1e-5f);
    for (size_t i = 0; i < factor.size(); ++i) {
        factor[i] /= std::sqrt(variance[i] + epsilon);
        summand[i] -= mean[i] * factor[i];
    }
    std::vector<int64_t> dims(x.rank() - 1, 1);
    dims[0] = x[1];
    FORNAX_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    const ValueId factors = node.graph().AddFloats(node.name() + ".factor", shape, factor);
    const ValueId summands = node.graph().AddFloats(node.name() + ".summand", shape, summand);
    FORNAX_ASSIGN_OR_RETURN(const ValueId scaled,
                            Combine(node, BinaryFunction::kMul, node.Input(0), factors));
    return node.SetOutput(Combine(node, BinaryFunction::kAdd, scaled, summands));
}

// (x - mean(x)) / sqrt(variance(x) + epsilon) * scale + bias, over the axes from `axis` on.
Status ImportLayerNormalization(NodeImporter& node) {
    const size_t rank = node.InputShape(0).rank();
    FORNAX_ASSIGN_OR_RETURN(const uint32_t axis,
                            legacy_graph::ResolveAxis(node.Integer("axis", -1), rank));
    const legacy_graph::op::Reduce mean{ReduceKind::kMean, axis,
                                        static_cast<uint32_t>(rank - axis)};
    FORNAX_ASSIGN_OR_RETURN(const ValueId average, node.Add(mean, {node.Input(0)}));
    FORNAX_ASSIGN_OR_RETURN(const ValueId centred,
                            Combine(node, BinaryFunction::kSub, node.Input(0), average));
    FORNAX_ASSIGN_OR_RETURN(const ValueId squares,
                            Combine(node, BinaryFunction::kMul, centred, centred));
    FORNAX_ASSIGN_OR_RETURN(const ValueId variance, node.Add(mean, {squares}));
    FORNAX_ASSIGN_OR_RETURN(const ValueId epsilon, node.Scalar(node.Float("epsilon", 1e-5f)));
    FORNAX_ASSIGN_OR_RETURN(const ValueId shifted,
                            Combine(node, BinaryFunction::kAdd, variance, epsilon));
    FORNAX_ASSIGN_OR_RETURN(const ValueId deviation,
                            node.Add(legacy_graph::op::Unary{{UnaryFunction::kSqrt}}, {shifted}));
    FORNAX_ASSIGN_OR_RETURN(ValueId y, Combine(node, BinaryFunction::kDiv, centred, deviation));
    FORNAX_ASSIGN_OR_RETURN(y, Combine(node, BinaryFunction::kMul, y, node.Input(1)));
    if (node.HasInput(2)) {
        FORNAX_ASSIGN_OR_RETURN(y, Combine(node, BinaryFunction::kAdd, y, node.Input(2)));
    }
    return node.SetOutput(y);
}

Status ImportSoftmax(NodeImporter& node) {
    const Shape shape = node.InputShape(0);
    const int64_t default_axis = node.opset() < 13 ? 1 : -1;
    FORNAX_ASSIGN_OR_RETURN(
        const uint32_t axis,
        legacy_graph::ResolveAxis(node.Integer("axis", default_axis), shape.rank()));
    if (node.opset() >= 13 || axis + 1 == shape.rank()) {
        return node.SetOutput(node.Add(legacy_graph::op::Softmax{axis}, {node.Input(0)}));
    }
    // Before version 13, the axes from `axis` on are normalised together.
    FORNAX_ASSIGN_OR_RETURN(
        const ValueId lines,
        node.Reshape(node.Input(0),
                     std::array<int64_t, 2>{shape.ElementsBetween(0, axis),
                                            shape.ElementsBetween(axis, shape.rank())}));
    FORNAX_ASSIGN_OR_RETURN(const ValueId y, node.Add(legacy_graph::op::Softmax{1}, {lines}));
    return node.SetOutput(node.Add(legacy_graph::op::Reshape{shape}, {y}));
}

Status ImportGlobalAveragePool(NodeImporter& node) {
    return ImportGlobalPool(node, ReduceKind::kMean);
}

Status ImportGlobalMaxPool(NodeImporter& node) {
    return ImportGlobalPool(node, ReduceKind::kMax);
}

// The axes are an attribute or, in later versions, an input; none means all.
template <ReduceKind kind>
Status ImportReduce(NodeImporter& node) {
    const Shape shape = node.InputShape(0);
    std::vector<int64_t> given = node.Integers("axes");
    if (node.HasInput(1)) {
        FORNAX_ASSIGN_OR_RETURN(given, node.ConstantIntegers(1, "axes"));
    }
    if (given.empty() && node.Integer("noop_with_empty_axes", 0) != 0) {
        return node.SetOutput(node.Input(0));
    }
    std::vector<uint32_t> axes;
    for (int64_t axis : given) {
        FORNAX_ASSIGN_OR_RETURN(const uint32_t resolved,
                                legacy_graph::ResolveAxis(axis, shape.rank()));
        axes.push_back(resolved);
    }
    for (uint32_t axis = 0; given.empty() && axis < shape.rank(); ++axis) {
        axes.push_back(axis);
    }
    FORNAX_ASSIGN_OR_RETURN(const ValueId y, ReduceAxes(node, kind, node.Input(0), axes));
    if (node.Integer("keepdims", 1) != 0) {
        return node.SetOutput(y);
    }
    std::vector<int64_t> dims;
    for (uint32_t axis = 0; axis < shape.rank(); ++axis) {
        if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
            dims.push_back(shape[axis]);
        }
    }
    return node.SetOutput(node.Reshape(y, dims));
}
template Status ImportReduce<ReduceKind::kSum>(NodeImporter&);
template Status ImportReduce<ReduceKind::kMean>(NodeImporter&);
template Status ImportReduce<ReduceKind::kMax>(NodeImporter&);
template Status ImportReduce<ReduceKind::kMin>(NodeImporter&);

}  // namespace fornax::legacy_onnx
