// Operators of onnxruntime's domain com.microsoft that its quantisers write.
#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/frontends/onnx/recurrent_attributes.h"
#include "compiler/frontends/onnx/window_attributes.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/index.h"
#include "compiler/graph/build/normalise.h"
#include "compiler/graph/build/product.h"

namespace fornax::onnx_frontend {
namespace {

using graph::Overflow;
using graph::QuantAxis;

Val Dequantised(Val x, Val scale, Val zero, QuantAxis axis = {}) {
    return graph::Dequantise(x, scale, zero, axis, ElementType::kF32);
}

// The f32 numbers of three operands of the node: integers, scale and zero point.
Val DequantisedAt(Node& node, size_t first, QuantAxis axis = {}) {
    return Dequantised(node.In(first), node.In(first + 1), node.Opt(first + 2), axis);
}

// As integers of the type of `like`, by the scale and zero point at `first`.
Val QuantisedAt(Node& node, Val y, size_t first, Val like) {
    const Val zero = node.Opt(first + 1);
    return graph::Quantise(y, node.In(first), zero, {}, zero ? zero.element() : like.element(),
                           Overflow::kSaturate, ElementType::kF32);
}

// --- Elementwise and pooling: dequantised, computed, quantised ---

// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
template <auto function>
void ImportQLinearBinary(Node& node) {
    const Val y = function(DequantisedAt(node, 0), DequantisedAt(node, 3));
    node.Out(QuantisedAt(node, y, 6, node.In(0)));
}

Val Sum(Val a, Val b) {
    return a + b;
}

Val Multiplied(Val a, Val b) {
    return a * b;
}

void ImportQLinearSigmoid(Node& node) {
    node.Out(QuantisedAt(node, graph::map::Sigmoid(DequantisedAt(node, 0)), 3, node.In(0)));
}

void ImportQLinearLeakyRelu(Node& node) {
    const Val x = DequantisedAt(node, 0);
    const Val y = graph::Where(graph::Less(x, 0), x * node.Float("alpha", 0.01), x);
    node.Out(QuantisedAt(node, y, 3, node.In(0)));
}

void ImportQLinearGlobalAveragePool(Node& node) {
    const Val x = DequantisedAt(node, 0);
    if (x.rank() < 3) {
        FailInvalid(fmt::format("the input is {}", x.shape().ToString()));
    }
    const bool channels_last = node.Int("channels_last", 0) != 0;
    std::vector<int64_t> axes;
    Expr count(1);
    for (int64_t axis = channels_last ? 1 : 2; axis < x.rank() - (channels_last ? 1 : 0); ++axis) {
        axes.push_back(axis);
        count = count * x.dim(axis);
    }
    const Val total = graph::Reduce(graph::Combine::kSum, x, axes, true);
    const Val y = total / graph::Cast(node.builder().Size(count), ElementType::kF32);
    node.Out(QuantisedAt(node, y, 3, node.In(0)));
}

void ImportQLinearAveragePool(Node& node) {
    Val x = DequantisedAt(node, 0);
    if (x.rank() < 3) {
        FailInvalid(fmt::format("the input is {}", x.shape().ToString()));
    }
    const bool channels_last = node.Int("channels_last", 0) != 0;
    if (channels_last) {
        x = graph::MoveAxis(x, -1, 1);
    }
    std::vector<Expr> extra;
    const graph::SpatialWindow window = ReadPoolWindow(node, x, extra);
    const Val y = graph::AveragePool(x, window, extra, node.Int("count_include_pad", 0) != 0);
    node.Out(QuantisedAt(node, channels_last ? graph::MoveAxis(y, 1, -1) : y, 3, node.In(0)));
}

// Softmax as ONNX's operator set of the version `opset` has it.
void ImportQLinearSoftmax(Node& node) {
    const Val x = DequantisedAt(node, 0);
    const bool is_flat = node.Int("opset") < 13;
    const int64_t axis = Builder::Axis(node.Int("axis", is_flat ? 1 : -1), x.rank());
    const Val y =
        is_flat ? graph::Reshape(graph::Softmax(graph::Flatten(x, axis, x.rank()), axis), x.shape())
                : graph::Softmax(x, axis);
    node.Out(QuantisedAt(node, y, 3, node.In(0)));
}

// condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero
void ImportQLinearWhere(Node& node) {
    const Val z = graph::Where(node.In(0), DequantisedAt(node, 1), DequantisedAt(node, 4));
    node.Out(QuantisedAt(node, z, 7, node.In(1)));
}

// y_scale, y_zero, then x, scale and zero of each operand
void ImportQLinearConcat(Node& node) {
    Vals parts;
    for (size_t i = 2; i + 2 < node.input_count(); i += 3) {
        parts.push_back(DequantisedAt(node, i));
    }
    if (parts.empty()) {
        FailInvalid("it has no operands");
    }
    node.Out(QuantisedAt(node, graph::Concat(parts, node.Int("axis")), 0, node.In(2)));
}

// --- Products ---

// a, b, a_scale, b_scale, a_zero, b_zero, bias
void ImportMatMulIntegerToFloat(Node& node) {
    const Val sums = graph::MatMulIntegers(node.In(0), node.Opt(4), node.In(1), node.Opt(5));
    const Val y = graph::Cast(sums, node.In(2).element()) * (node.In(2) * node.In(3));
    node.Out(node.Has(6) ? y + node.In(6) : y);
}

// a, b, b_scale, b_zero, bias
void ImportDynamicQuantizeMatMul(Node& node) {
    const graph::QuantisedTensor a = graph::DynamicQuantise(node.In(0));
    const Val sums = graph::MatMulIntegers(a.value, a.zero, node.In(1), node.Opt(3));
    const Val y = graph::Cast(sums, ElementType::kF32) * (a.scale * node.In(2));
    node.Out(node.Has(4) ? y + node.In(4) : y);
}

// a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero. c is in units of both scales; without
// y_scale the result is f32.
void ImportQGemm(Node& node) {
    const auto flip = [](Val v, bool wanted) { return wanted ? graph::Permute(v, {1, 0}) : v; };
    const bool flip_b = node.Int("transB", 0) != 0;
    const Val b_scale = node.In(4);
    const Val a = flip(node.In(0), node.Int("transA", 0) != 0);
    Val b = graph::Cast(node.In(3), ElementType::kI32);
    if (node.Has(5)) {
        b = b -
            graph::SpreadScale(graph::Cast(node.In(5), ElementType::kI32), b, {flip_b ? 0 : 1, 0});
    }
    Val sums = graph::MatMulIntegers(a, node.Opt(2), flip(b, flip_b), Val());
    if (node.Has(6)) {
        sums = sums + node.In(6);
    }
    const Val y =
        graph::Cast(sums, ElementType::kF32) * (node.In(1) * b_scale * node.Float("alpha", 1));
    node.Out(node.Has(7) ? QuantisedAt(node, y, 7, node.In(0)) : y);
}

// --- Tables ---

// Elements of 4 bits, the low half of a byte first, along the last axis.
Val Halves(Val bytes) {
    Builder& b = bytes.builder();
    const Val low = graph::map::And(bytes, b.Integer(ElementType::kU8, 15));
    const Val high = graph::map::ShiftRight(bytes, b.Integer(ElementType::kU8, 4));
    Shape shape = bytes.shape();
    shape[shape.rank() - 1] = shape[shape.rank() - 1] * 2;
    return graph::Reshape(graph::Stack({low, high}, bytes.rank()), shape);
}

// data, indices, scales, zero points: rows of a table with a scale for each block of elements.
void ImportGatherBlockQuantized(Node& node) {
    Val data = node.In(0), zero = node.Opt(3);
    const Val indices = node.In(1), scales = node.In(2);
    const int64_t bits = node.Int("bits", 4);
    if (data.rank() < 1 || (bits != 4 && bits != 8)) {
        FailUnsupported(fmt::format("its data are {} of {} bits", data.type().ToString(), bits));
    }
    if (scales.rank() != data.rank() || (zero && zero.rank() != data.rank())) {
        FailInvalid(fmt::format("the scales {} do not fit the data {}", scales.shape().ToString(),
                                data.shape().ToString()));
    }
    if (data.element() == ElementType::kU8) {
        if (!zero) {
            zero = node.builder().Integer(ElementType::kU8, int64_t{1} << (bits - 1));
        } else if (bits == 4) {
            zero = graph::SliceAxis(Halves(zero), -1, 0, scales.dim(-1));
        }
        data = bits == 4 ? Halves(data) : data;
    }
    const int64_t gathered = Builder::Axis(node.Int("gather_axis", 0), data.rank());
    QuantAxis axis{Builder::Axis(node.Int("quantize_axis", 1), data.rank()),
                   node.Int("block_size", 128)};
    if (gathered == axis.axis) {
        const Val table = graph::Dequantise(data, scales, zero, axis, scales.element());
        node.Out(graph::Take(table, indices, gathered));
        return;
    }
    // Without zero points there is one number for all.
    const auto taken = [&](Val v) {
        return v && v.rank() != 0 ? graph::Take(v, indices, gathered) : v;
    };
    axis.axis += gathered < axis.axis ? indices.rank() - 1 : 0;
    node.Out(graph::Dequantise(taken(data), taken(scales), taken(zero), axis, scales.element()));
}

// --- Recurrent ---

// X, W, R, B, lengths, h, c, P, W_scale, W_zero, R_scale, R_zero. The weights are [directions,
// inputs, gates], their scales one a direction or a gate.
void ImportDynamicQuantizeLstm(Node& node) {
    const graph::RecurrentOptions options = ReadRecurrentOptions(node, graph::RecurrentKind::kLstm);
    const graph::RecurrentResult result = graph::QuantisedLstm(
        {node.In(1), node.In(8), node.Opt(9)}, {node.In(2), node.In(10), node.Opt(11)},
        {node.In(0), Val(), Val(), node.Opt(3), node.Opt(4), node.Opt(5), node.Opt(6), node.Opt(7)},
        options);
    node.Out(0, result.y);
    node.Out(1, result.h);
    node.Out(2, result.c);
}

constexpr std::string_view kDomain = "com.microsoft";

constexpr OperatorEntry kOperators[] = {
    {"DynamicQuantizeLSTM", 3, ImportDynamicQuantizeLstm, 1, kDomain},
    {"DynamicQuantizeMatMul", 3, ImportDynamicQuantizeMatMul, 1, kDomain},
    {"GatherBlockQuantized", 3, ImportGatherBlockQuantized, 1, kDomain},
    {"MatMulIntegerToFloat", 4, ImportMatMulIntegerToFloat, 1, kDomain},
    {"QGemm", 2, ImportQGemm, 1, kDomain},
    {"QLinearAdd", 2, ImportQLinearBinary<Sum>, 1, kDomain},
    {"QLinearAveragePool", 4, ImportQLinearAveragePool, 1, kDomain},
    {"QLinearConcat", 2, ImportQLinearConcat, 1, kDomain},
    {"QLinearGlobalAveragePool", 2, ImportQLinearGlobalAveragePool, 1, kDomain},
    {"QLinearLeakyRelu", 2, ImportQLinearLeakyRelu, 1, kDomain},
    {"QLinearMul", 2, ImportQLinearBinary<Multiplied>, 1, kDomain},
    {"QLinearSigmoid", 2, ImportQLinearSigmoid, 1, kDomain},
    {"QLinearSoftmax", 4, ImportQLinearSoftmax, 1, kDomain},
    {"QLinearWhere", 8, ImportQLinearWhere, 1, kDomain},
};

}  // namespace

std::span<const OperatorEntry> MicrosoftOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
