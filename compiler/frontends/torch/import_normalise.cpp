// Softmax and the normalisations.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/normalise.h"

namespace fornax::torch_frontend {
namespace {

namespace map = graph::map;

// In the result's type where that is the wider one.
template <Val (*function)(Val, int64_t)>
void ImportSoftmax(Node& node) {
    const Val x = node.As("self", graph::ComputeType(node.ResultType().element));
    const Val y = function(AtLeastOne(x), AxisOf(node.Int("dim"), x));
    node.Out(x.rank() == 0 ? graph::Reshape(y, Shape{}) : y);
}

// Rows that are all minus infinity give zeros.
void ImportSafeSoftmax(Node& node) {
    const Val x = AtLeastOne(node.As("self", graph::ComputeType(node.ResultType().element)));
    const int64_t axis = AxisOf(node.Int("dim"), x);
    const Val none = graph::Equal(graph::Reduce(graph::Combine::kMax, x, {axis}, true),
                                  -std::numeric_limits<double>::infinity());
    const Val y = graph::Where(none, graph::Like(x, 0), graph::Softmax(x, axis));
    node.Out(graph::Reshape(y, node.ResultType().shape));
}

void ImportLayerNorm(Node& node) {
    Builder& b = node.builder();
    const Val given = node.In("input");
    const ElementType compute = graph::ComputeType(given.element());
    const std::vector<Expr> sizes = node.Sizes("normalized_shape");
    const int64_t axis = given.rank() - static_cast<int64_t>(sizes.size());
    if (axis < 0 || sizes.empty()) {
        FailInvalid(
            fmt::format("it normalises the last {} of {} dimensions", sizes.size(), given.rank()));
    }
    const Shape shape{std::vector<Expr>(sizes)};
    const Val scale = node.Has("weight") ? node.As("weight", compute) : b.Full(compute, shape, 1);
    const Val bias = node.Has("bias") ? node.As("bias", compute) : Val();
    const graph::LayerNormResult result = graph::LayerNorm(graph::Cast(given, compute), scale, bias,
                                                           axis, node.Float("eps"), compute);
    node.Out(0, result.y);
    if (node.Wants(1)) {
        node.Out(1, result.mean);
    }
    if (node.Wants(2)) {
        node.Out(2, result.inverse_deviation);
    }
}

void ImportRmsNorm(Node& node) {
    const Val x = node.In("input");
    const ElementType compute = graph::ComputeType(x.element());
    const std::vector<Expr> sizes = node.Sizes("normalized_shape");
    const Val scale = node.Has("weight")
                          ? node.As("weight", compute)
                          : node.builder().Full(compute, Shape{std::vector<Expr>(sizes)}, 1);
    double epsilon = x.element() == ElementType::kF64 ? 2.220446049250313e-16 : 1.1920929e-07;
    if (x.element() == ElementType::kF16) {
        epsilon = 0.0009765625;
    } else if (x.element() == ElementType::kBF16) {
        epsilon = 0.0078125;
    }
    node.Out(graph::RmsNorm(graph::Cast(x, compute), scale,
                            x.rank() - static_cast<int64_t>(sizes.size()),
                            node.Float("eps", epsilon), compute));
}

void ImportGroupNorm(Node& node) {
    Builder& b = node.builder();
    const Val given = node.In("input");
    const ElementType compute = graph::ComputeType(given.element());
    const Val x = graph::Cast(given, compute);
    const int64_t groups = node.Int("group");
    const double epsilon = node.Float("eps");
    const Val ones = b.Full(compute, Shape{x.dim(1)}, 1),
              zeros = b.Full(compute, Shape{x.dim(1)}, 0);
    node.Out(0, graph::GroupNorm(x, node.Has("weight") ? node.As("weight", compute) : ones,
                                 node.Has("bias") ? node.As("bias", compute) : zeros, groups,
                                 epsilon, compute));
    if (!node.Wants(1) && !node.Wants(2)) {
        return;
    }
    const Expr rest = graph::FloorDiv(x.shape().Volume(), x.dim(0) * groups);
    const Val rows = graph::Reshape(x, Shape{x.dim(0), groups, rest});
    const Val mean = graph::Mean(rows, {-1});
    const Val centred = rows - mean;
    const Val inverse = map::Reciprocal(map::Sqrt(graph::Mean(centred * centred, {-1}) + epsilon));
    node.Out(1, graph::Squeeze(mean, -1));
    node.Out(2, graph::Squeeze(inverse, -1));
}

Val PerChannel(Val vector, int64_t rank) {
    std::vector<Expr> dims(static_cast<size_t>(std::max<int64_t>(rank - 1, 1)), Expr(1));
    dims[0] = vector.dim(0);
    return graph::Reshape(vector, Shape(std::move(dims)));
}

struct BatchNormArguments {
    Val x, weight, bias, mean, variance;
    double epsilon = 0;
};

BatchNormArguments ReadBatchNorm(Node& node, bool training) {
    BatchNormArguments result;
    const Val given = node.In("input");
    const ElementType compute = graph::ComputeType(given.element());
    result.x = graph::Cast(given, compute);
    const auto optional = [&](std::string_view name) {
        return node.Has(name) ? node.As(name, compute) : Val();
    };
    result.weight = optional("weight");
    result.bias = optional("bias");
    result.epsilon = node.Float("eps");
    if (training) {
        if (given.rank() < 2) {
            FailInvalid(fmt::format("the input is {}", given.shape().ToString()));
        }
        const graph::BatchStatistics now = graph::BatchMoments(result.x);
        result.mean = now.mean;
        result.variance = now.variance;
    } else {
        result.mean = node.As("running_mean", compute);
        result.variance = node.As("running_var", compute);
    }
    return result;
}

Val Normalised(const BatchNormArguments& in) {
    const int64_t rank = in.x.rank();
    if (in.weight && in.bias && rank >= 2) {
        return graph::BatchNorm(in.x, in.weight, in.bias, in.mean, in.variance, in.epsilon);
    }
    const Val inverse = map::Reciprocal(map::Sqrt(in.variance + in.epsilon));
    Val y = (in.x - PerChannel(in.mean, rank)) * PerChannel(inverse, rank);
    if (in.weight) {
        y = y * PerChannel(in.weight, rank);
    }
    return in.bias ? y + PerChannel(in.bias, rank) : y;
}

// Results: y, the batch's mean and inverse deviation, and the running statistics that follow.
void OutBatchNorm(Node& node, bool training) {
    const BatchNormArguments in = ReadBatchNorm(node, training);
    node.Out(0, Normalised(in));
    if (!training) {
        // Nothing is saved.
        for (const size_t index : {1, 2}) {
            if (node.Wants(index)) {
                const TensorType type = node.ResultType(index);
                node.Out(index, node.builder().Full(type.element, type.shape, 0));
            }
        }
        for (const size_t index : {3, 4}) {
            if (node.Wants(index)) {
                node.Out(index, index == 3 ? in.mean : in.variance);
            }
        }
        return;
    }
    node.Out(1, in.mean);
    node.Out(2, map::Reciprocal(map::Sqrt(in.variance + in.epsilon)));
    if (!node.Wants(3) && !node.Wants(4)) {
        return;
    }
    const double momentum = node.Float("momentum");
    Builder& b = node.builder();
    const ElementType type = in.mean.element();
    const Expr count = graph::FloorDiv(in.x.shape().Volume(), in.x.dim(1));
    const Val n = graph::Cast(b.Size(count), type);
    const auto running = [&](std::string_view name, Val now) {
        return node.As(name, type) * (1 - momentum) + now * momentum;
    };
    node.Out(3, running("running_mean", in.mean));
    node.Out(4, running("running_var", in.variance * (n / (n - 1.0))));
}

void ImportBatchNorm(Node& node) {
    OutBatchNorm(node, node.Bool("training"));
}

void ImportBatchNormInference(Node& node) {
    OutBatchNorm(node, false);
}

constexpr OperatorEntry kOperators[] = {
    {"_fused_rms_norm.default", ImportRmsNorm},
    {"_log_softmax.default", ImportSoftmax<graph::LogSoftmax>},
    {"_native_batch_norm_legit.no_stats", ImportBatchNorm},
    {"_native_batch_norm_legit_functional.default", ImportBatchNorm},
    {"_native_batch_norm_legit_no_training.default", ImportBatchNormInference},
    {"_safe_softmax.default", ImportSafeSoftmax},
    {"_softmax.default", ImportSoftmax<graph::Softmax>},
    {"log_softmax.int", ImportSoftmax<graph::LogSoftmax>},
    {"native_batch_norm.default", ImportBatchNorm},
    {"native_group_norm.default", ImportGroupNorm},
    {"native_layer_norm.default", ImportLayerNorm},
    {"rms_norm.default", ImportRmsNorm},
    {"softmax.int", ImportSoftmax<graph::Softmax>},
};

}  // namespace

std::span<const OperatorEntry> NormalisationOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
