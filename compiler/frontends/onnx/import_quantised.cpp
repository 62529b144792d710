// Quantised tensors and their products.
#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/frontends/onnx/tensor_proto.h"
#include "compiler/frontends/onnx/window_attributes.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/convolve.h"
#include "compiler/graph/build/product.h"

namespace fornax::onnx_frontend {
namespace {

using graph::Overflow;

graph::QuantAxis ReadQuantAxis(Node& node) {
    return {node.Int("axis", 1), node.Int("block_size", 0)};
}

void ImportQuantizeLinear(Node& node) {
    const Val x = node.In(0), scale = node.In(1), zero = node.Opt(2);
    const ElementType to = zero ? zero.element() : node.Type("output_dtype", ElementType::kU8);
    ElementType compute = graph::ComputeType(scale.element());
    compute = node.Type("precision", compute);
    if (x.element() == ElementType::kF64) {
        compute = ElementType::kF64;
    }
    const bool saturate = node.Int("saturate", 1) != 0 || to == ElementType::kF4E2M1;
    node.Out(graph::Quantise(x, scale, zero, ReadQuantAxis(node), to,
                             saturate ? Overflow::kSaturate : Overflow::kSpecial, compute));
}

void ImportDequantizeLinear(Node& node) {
    node.Out(graph::Dequantise(node.In(0), node.In(1), node.Opt(2), ReadQuantAxis(node),
                               node.Type("output_dtype", node.In(1).element())));
}

void ImportDynamicQuantizeLinear(Node& node) {
    const graph::QuantisedTensor result = graph::DynamicQuantise(node.In(0));
    node.Out(0, result.value);
    node.Out(1, result.scale);
    node.Out(2, result.zero);
}

void ImportMatMulInteger(Node& node) {
    node.Out(graph::MatMulIntegers(node.In(0), node.Opt(2), node.In(1), node.Opt(3)));
}

// The i32 sums times their scale, as integers of the zero point's type.
Val Requantise(Val sums, Val scale, Val y_scale, Val y_zero) {
    const Val factor =
        graph::Cast(scale, ElementType::kF32) / graph::Cast(y_scale, ElementType::kF32);
    const Val y = graph::Cast(sums, ElementType::kF32) * factor;
    return graph::Quantise(y, graph::Like(y, 1), y_zero, {}, y_zero.element(), Overflow::kSaturate,
                           ElementType::kF32);
}

Val Column(Val v) {
    return v.rank() == 1 && !(v.shape() == Shape{1}) ? graph::Unsqueeze(v, 1) : v;
}

// a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point
void ImportQLinearMatMul(Node& node) {
    const Val product = graph::MatMulIntegers(node.In(0), node.In(2), node.In(3), node.In(5));
    const Val a_scale = Column(graph::Cast(node.In(1), ElementType::kF32));
    const Val scale = a_scale * graph::Cast(node.In(4), ElementType::kF32);
    node.Out(Requantise(product, scale, node.In(6), node.In(7)));
}

Val ConvolveIntegers(Node& node, Val x, Val x_zero, Val w, Val w_zero) {
    return graph::ConvolveIntegers(x, x_zero, w, w_zero, ReadWindow(node, x, w),
                                   node.Int("group", 1));
}

void ImportConvInteger(Node& node) {
    node.Out(ConvolveIntegers(node, node.In(0), node.Opt(2), node.In(1), node.Opt(3)));
}

// x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B
void ImportQLinearConv(Node& node) {
    Val sums = ConvolveIntegers(node, node.In(0), node.In(2), node.In(3), node.In(5));
    const graph::QuantAxis channel{1, 0};
    if (node.Has(8)) {
        sums = sums + graph::SpreadScale(node.In(8), sums, channel);
    }
    const Val scale =
        graph::SpreadScale(node.In(4), sums, channel) * graph::Reshape(node.In(1), Shape{});
    node.Out(Requantise(sums, scale, node.In(6), node.In(7)));
}

// A, B, scales, zero_points, g_idx, bias
void ImportMatMulNBits(Node& node) {
    const graph::BlockWeights form{node.Int("K"), node.Int("N"), node.Int("bits", 4),
                                   node.Int("block_size")};
    Val y = graph::MatMulBlocks(node.In(0), node.In(1), node.In(2), node.Opt(3), node.Opt(4), form);
    if (node.Has(5)) {
        y = y + node.In(5);
    }
    node.Out(y);
}

constexpr OperatorEntry kOperators[] = {
    {"ConvInteger", 2, ImportConvInteger},
    {"DequantizeLinear", 2, ImportDequantizeLinear},
    {"DequantizeLinear", 2, ImportDequantizeLinear, 1, "com.microsoft"},
    {"DynamicQuantizeLinear", 1, ImportDynamicQuantizeLinear},
    {"MatMulInteger", 2, ImportMatMulInteger},
    {"MatMulNBits", 3, ImportMatMulNBits, 1, "com.microsoft"},
    {"QLinearConv", 8, ImportQLinearConv},
    {"QLinearMatMul", 8, ImportQLinearMatMul},
    {"QuantizeLinear", 2, ImportQuantizeLinear},
    {"QuantizeLinear", 2, ImportQuantizeLinear, 1, "com.microsoft"},
};

}  // namespace

std::span<const OperatorEntry> QuantisedOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
