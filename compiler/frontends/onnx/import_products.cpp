// Matrix products.
#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/product.h"

namespace fornax::onnx_frontend {
namespace {

void ImportMatMul(Node& node) {
    node.Out(graph::MatMul(node.In(0), node.In(1)));
}

void ImportGemm(Node& node) {
    node.Out(graph::Gemm(node.In(0), node.In(1), node.Opt(2), node.Float("alpha", 1),
                         node.Float("beta", 1), node.Int("transA", 0) != 0,
                         node.Int("transB", 0) != 0));
}

void ImportEinsum(Node& node) {
    node.Out(graph::Einsum(node.Text("equation", ""), node.All()));
}
void ImportDet(Node& node) {
    node.Out(graph::Determinant(node.In(0)));
}

constexpr OperatorEntry kOperators[] = {
    {"Det", 1, ImportDet},
    {"Einsum", 1, ImportEinsum},
    {"Gemm", 2, ImportGemm},
    {"MatMul", 2, ImportMatMul},
};

}  // namespace

std::span<const OperatorEntry> ProductOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
