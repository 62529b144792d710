// Activations.
#include <limits>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"

namespace fornax::torch_frontend {
namespace {

namespace map = graph::map;

void ImportRelu(Node& node) {
    node.Out(graph::Relu(node.In("self")));
}

void ImportRelu6(Node& node) {
    node.Out(graph::Min(graph::Relu(node.In("self")), 6));
}

void ImportHardtanh(Node& node) {
    const Val x = node.In("self");
    node.Out(graph::Clip(x, node.As("min_val", x.element()), node.As("max_val", x.element())));
}

void ImportLeakyRelu(Node& node) {
    node.Out(graph::LeakyRelu(node.In("self"), node.Float("negative_slope", 0.01)));
}

void ImportGelu(Node& node) {
    node.Out(graph::Gelu(node.In("self"), node.Text("approximate", "none") == "tanh"));
}

void ImportSilu(Node& node) {
    node.Out(graph::Swish(node.In("self"), 1));
}

void ImportMish(Node& node) {
    node.Out(graph::Mish(node.In("self")));
}

void ImportHardswish(Node& node) {
    node.Out(graph::Widened(node.In("self"),
                            [](Val v) { return v * graph::Min(graph::Max(v + 3.0, 0), 6) / 6.0; }));
}

void ImportHardsigmoid(Node& node) {
    node.Out(graph::Widened(node.In("self"),
                            [](Val v) { return graph::Min(graph::Max(v + 3.0, 0), 6) / 6.0; }));
}

void ImportElu(Node& node) {
    const double alpha = node.Float("alpha", 1), scale = node.Float("scale", 1);
    const double input_scale = node.Float("input_scale", 1);
    node.Out(graph::Widened(node.In("self"), [&](Val v) {
        return graph::Where(graph::Greater(v, 0), v * scale,
                            map::Expm1(v * input_scale) * (alpha * scale));
    }));
}

void ImportSoftplus(Node& node) {
    const double beta = node.Float("beta", 1), threshold = node.Float("threshold", 20);
    node.Out(graph::Widened(node.In("self"), [&](Val v) {
        const Val scaled = v * beta;
        return graph::Where(graph::Greater(scaled, threshold), v,
                            map::Log1p(map::Exp(scaled)) / beta);
    }));
}

void ImportLogSigmoid(Node& node) {
    node.Out(graph::Widened(node.In("self"), [](Val v) {
        return graph::Min(v, 0) - map::Log1p(map::Exp(-map::Abs(v)));
    }));
}

void ImportThreshold(Node& node) {
    const Val x = node.In("self");
    node.Out(graph::Where(map::LessEqual(x, node.As("threshold", x.element())),
                          node.As("value", x.element()), x));
}

// Slopes of channels, which are axis 1.
void ImportPRelu(Node& node) {
    const Val x = node.In("self");
    Val weight = node.In("weight");
    if (weight.rank() == 1 && x.rank() > 2) {
        std::vector<Expr> dims(static_cast<size_t>(x.rank() - 1), Expr(1));
        dims[0] = weight.dim(0);
        weight = graph::Reshape(weight, Shape(std::move(dims)));
    }
    node.Out(graph::PRelu(x, weight));
}

void ImportGlu(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = Builder::Axis(node.Int("dim", -1), x.rank());
    const Expr half = graph::FloorDiv(x.dim(axis), 2);
    node.Out(graph::SliceAxis(x, axis, 0, half) *
             map::Sigmoid(graph::SliceAxis(x, axis, half, half)));
}

constexpr OperatorEntry kOperators[] = {
    {"_prelu_kernel.default", ImportPRelu},
    {"elu.default", ImportElu},
    {"gelu.default", ImportGelu},
    {"glu.default", ImportGlu},
    {"hardsigmoid.default", ImportHardsigmoid},
    {"hardswish.default", ImportHardswish},
    {"hardtanh.default", ImportHardtanh},
    {"leaky_relu.default", ImportLeakyRelu},
    {"log_sigmoid.default", ImportLogSigmoid},
    {"mish.default", ImportMish},
    {"prelu.default", ImportPRelu},
    {"relu.default", ImportRelu},
    {"relu6.default", ImportRelu6},
    {"silu.default", ImportSilu},
    {"softplus.default", ImportSoftplus},
    {"threshold.default", ImportThreshold},
};

}  // namespace

std::span<const OperatorEntry> ActivationOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
