// Softmax, normalisations, dropout.
#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/frontends/onnx/tensor_proto.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/normalise.h"
#include "compiler/graph/build/random.h"

namespace fornax::onnx_frontend {
namespace {

// Before opset 13 the axes from `axis` on are one.
template <Val (*function)(Val, int64_t)>
void ImportSoftmax(Node& node) {
    const Val x = node.In(0);
    if (node.version() >= 13) {
        node.Out(function(x, node.Int("axis", -1)));
        return;
    }
    const int64_t axis = Builder::Axis(node.Int("axis", 1), x.rank());
    node.Out(graph::Reshape(function(graph::Flatten(x, axis, x.rank()), axis), x.shape()));
}

ElementType StashType(Node& node) {
    return node.Type("stash_type", ElementType::kF32);
}

// The precision that statistics are computed in: f64 inputs keep theirs.
ElementType StatisticsType(Node& node) {
    const ElementType stash = StashType(node);
    return node.In(0).element() == ElementType::kF64 ? ElementType::kF64 : stash;
}

void ImportLayerNorm(Node& node) {
    const ElementType stash = StashType(node);
    const graph::LayerNormResult result =
        graph::LayerNorm(node.In(0), node.In(1), node.Opt(2), node.Int("axis", -1),
                         node.Float("epsilon", 1e-5F), StatisticsType(node));
    node.Out(0, result.y);
    node.Out(1, graph::Cast(result.mean, stash));
    node.Out(2, graph::Cast(result.inverse_deviation, stash));
}

void ImportRmsNorm(Node& node) {
    node.Out(graph::RmsNorm(node.In(0), node.In(1), node.Int("axis", -1),
                            node.Float("epsilon", 1e-5F), StatisticsType(node)));
}

void ImportGroupNorm(Node& node) {
    const Val x = node.In(0);
    const int64_t groups = node.Int("num_groups");
    Val scale = node.In(1), bias = node.In(2);
    if (node.version() < 21) {
        // One scale a group.
        const auto spread = [&](Val v) {
            const Expr each = graph::FloorDiv(x.dim(1), groups);
            return graph::Reshape(graph::BroadcastTo(graph::Unsqueeze(v, 1), {groups, each}),
                                  {x.dim(1)});
        };
        scale = spread(scale);
        bias = spread(bias);
    }
    node.Out(graph::GroupNorm(x, scale, bias, groups, node.Float("epsilon", 1e-5F),
                              StatisticsType(node)));
}

void ImportInstanceNorm(Node& node) {
    node.Out(graph::InstanceNorm(node.In(0), node.In(1), node.In(2), node.Float("epsilon", 1e-5F)));
}

void ImportBatchNorm(Node& node) {
    const Val x = node.In(0);
    const double epsilon = node.Float("epsilon", 1e-5F);
    const bool training = node.Int("training_mode", 0) != 0;
    Val mean = node.In(3), variance = node.In(4);
    if (training) {
        const double momentum = node.Float("momentum", 0.9F);
        const graph::BatchStatistics now = graph::BatchMoments(x);
        const auto running = [&](Val old, Val current) {
            return old * momentum + graph::Cast(current, old.element()) * (1 - momentum);
        };
        node.Out(1, running(mean, now.mean));
        node.Out(2, running(variance, now.variance));
        mean = now.mean;
        variance = now.variance;
    } else if (node.Wants(1)) {
        FailUnsupported("it computes statistics, but is not in training mode");
    }
    node.Out(graph::BatchNorm(x, node.In(1), node.In(2), mean, variance, epsilon));
}

void ImportMeanVarianceNorm(Node& node) {
    std::vector<int64_t> axes = node.Ints("axes");
    if (!node.HasAttribute("axes")) {
        axes = {0, 2, 3};
    }
    node.Out(graph::MeanVarianceNorm(node.In(0), axes, 1e-9));
}

void ImportLpNorm(Node& node) {
    const int64_t p = node.Int("p", 2);
    if (p != 1 && p != 2) {
        FailInvalid(fmt::format("its p is {}, not 1 or 2", p));
    }
    node.Out(graph::LpNorm(node.In(0), node.Int("axis", -1), p));
}

void ImportLrn(Node& node) {
    node.Out(graph::LocalResponseNorm(node.In(0), node.Int("size"), node.Float("alpha", 1e-4F),
                                      node.Float("beta", 0.75), node.Float("bias", 1)));
}

void ImportDropout(Node& node) {
    Builder& b = node.builder();
    const Val x = node.In(0);
    bool training = false;
    if (node.version() >= 12 && node.Has(2)) {
        training = node.Integer(2, "the training mode") != 0;
    }
    double ratio = node.Float("ratio", 0.5);
    if (node.version() >= 12 && node.Has(1)) {
        ratio = training ? node.Numbers(1, "the ratio").at(0) : 0;
    }
    if (!training || ratio == 0) {
        node.Out(0, x);
        node.Out(1, b.Full(ElementType::kBool, x.shape(), 1));
        return;
    }
    const Val uniform = graph::RandomUniform(
        b, x.shape(), static_cast<uint64_t>(node.Int("seed", 0)), ElementType::kF32);
    const Val keep = graph::GreaterEqual(uniform, ratio);
    node.Out(0, ratio >= 1 ? b.Full(x.element(), x.shape(), 0)
                           : graph::Where(keep, x * (1 / (1 - ratio)), graph::Like(x, 0)));
    node.Out(1, keep);
}

constexpr OperatorEntry kOperators[] = {
    {"BatchNormalization", 5, ImportBatchNorm},
    {"Dropout", 1, ImportDropout},
    {"GroupNormalization", 3, ImportGroupNorm},
    {"Hardmax", 1, ImportSoftmax<graph::Hardmax>},
    {"InstanceNormalization", 3, ImportInstanceNorm},
    {"LRN", 1, ImportLrn},
    {"LayerNormalization", 2, ImportLayerNorm},
    {"LogSoftmax", 1, ImportSoftmax<graph::LogSoftmax>},
    {"LpNormalization", 1, ImportLpNorm},
    {"MeanVarianceNormalization", 1, ImportMeanVarianceNorm},
    {"RMSNormalization", 2, ImportRmsNorm},
    {"Softmax", 1, ImportSoftmax<graph::Softmax>},
};

}  // namespace

std::span<const OperatorEntry> NormalisationOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
