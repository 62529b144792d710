// Losses, and the steps of optimisers.
#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/loss.h"
#include "compiler/graph/build/normalise.h"

namespace fornax::onnx_frontend {
namespace {

graph::LossOptions ReadOptions(Node& node) {
    graph::LossOptions options;
    const std::string reduction = node.Text("reduction", "mean");
    if (reduction != "mean" && reduction != "sum" && reduction != "none") {
        FailInvalid(fmt::format("its reduction is \"{}\"", reduction));
    }
    options.reduction = reduction == "mean"  ? graph::LossReduction::kMean
                        : reduction == "sum" ? graph::LossReduction::kSum
                                             : graph::LossReduction::kNone;
    if (node.HasAttribute("ignore_index")) {
        options.ignored = node.Int("ignore_index");
    }
    return options;
}

void ImportNllLoss(Node& node) {
    node.Out(graph::NegativeLogLikelihood(node.In(0), node.In(1), node.Opt(2), ReadOptions(node)));
}

void ImportCrossEntropy(Node& node) {
    const Val logarithms = graph::LogSoftmax(node.In(0), 1);
    node.Out(0,
             graph::NegativeLogLikelihood(logarithms, node.In(1), node.Opt(2), ReadOptions(node)));
    node.Out(1, logarithms);
}

// Inputs of an optimiser: the rate, the count of updates, then groups of as many tensors each.
size_t GroupSize(Node& node, size_t groups) {
    const size_t tensors = node.input_count() - 2;
    if (node.input_count() < 2 || tensors % groups != 0) {
        FailInvalid(fmt::format("it has {} inputs, not 2 and {} for each tensor",
                                node.input_count(), groups));
    }
    return tensors / groups;
}

// The rate as a number without dimensions.
Val Rate(Node& node) {
    return graph::Reshape(node.In(0), Shape{});
}

void ImportAdagrad(Node& node) {
    const size_t count = GroupSize(node, 3);
    const Val steps = graph::Cast(graph::Reshape(node.In(1), Shape{}), node.In(0).element());
    const Val rate = Rate(node) / (steps * node.Float("decay_factor", 0) + 1.0);
    for (size_t i = 0; i < count; ++i) {
        const Val x = node.In(2 + i), h = node.In(2 + 2 * count + i);
        const Val g = x * node.Float("norm_coefficient", 0) + node.In(2 + count + i);
        const Val squares = h + g * g;
        node.Out(i, x - rate * g / (graph::map::Sqrt(squares) + node.Float("epsilon", 1e-6F)));
        node.Out(count + i, squares);
    }
}

void ImportMomentum(Node& node) {
    const size_t count = GroupSize(node, 3);
    const std::string mode = node.Text("mode", "standard");
    const double alpha = node.Float("alpha", 0);
    const double beta = node.Float("beta", 0);
    const Val first = graph::Equal(graph::Reshape(node.In(1), Shape{}), 0);
    for (size_t i = 0; i < count; ++i) {
        const Val x = node.In(2 + i), v = node.In(2 + 2 * count + i);
        const Val g = x * node.Float("norm_coefficient", 0) + node.In(2 + count + i);
        const Val weight = graph::Where(first, graph::Like(g, 1), graph::Like(g, beta));
        const Val next = v * alpha + weight * g;
        node.Out(i, x - Rate(node) * (mode == "nesterov" ? g + next * alpha : next));
        node.Out(count + i, next);
    }
}

void ImportAdam(Node& node) {
    const size_t count = GroupSize(node, 4);
    const double alpha = node.Float("alpha", 0.9F), beta = node.Float("beta", 0.999F);
    const Val steps = graph::Cast(graph::Reshape(node.In(1), Shape{}), ElementType::kF32);
    const Val one = graph::Like(steps, 1);
    const auto power = [&](double base) {
        return graph::map::Pow(graph::Like(steps, base), steps);
    };
    const Val corrected = Rate(node) * graph::map::Sqrt(one - power(beta)) / (one - power(alpha));
    const Val rate = graph::Where(graph::Greater(steps, 0), corrected, Rate(node));
    for (size_t i = 0; i < count; ++i) {
        const Val x = node.In(2 + i);
        const Val g = x * node.Float("norm_coefficient", 0) + node.In(2 + count + i);
        const Val v = node.In(2 + 2 * count + i) * alpha + g * (1 - alpha);
        const Val h = node.In(2 + 3 * count + i) * beta + g * g * (1 - beta);
        const Val next = x - rate * v / (graph::map::Sqrt(h) + node.Float("epsilon", 1e-6F));
        node.Out(i, next * (1 - node.Float("norm_coefficient_post", 0)));
        node.Out(count + i, v);
        node.Out(2 * count + i, h);
    }
}

constexpr OperatorEntry kOperators[] = {
    {"Adagrad", 2, ImportAdagrad, 1, "ai.onnx.preview.training"},
    {"Adam", 2, ImportAdam, 1, "ai.onnx.preview.training"},
    {"Momentum", 2, ImportMomentum, 1, "ai.onnx.preview.training"},
    {"NegativeLogLikelihoodLoss", 2, ImportNllLoss},
    {"SoftmaxCrossEntropyLoss", 2, ImportCrossEntropy},
};

}  // namespace

std::span<const OperatorEntry> LossOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
