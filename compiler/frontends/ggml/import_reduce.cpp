// Sums, normalisations and what else works along rows.
#include "compiler/frontends/ggml/node.h"

namespace fornax::ggml_frontend {
namespace {

using graph::Combine;
using graph::ElementType;
using graph::Shape;
using graph::Val;

Val SumNode(const Node& node) {
    // ggml's CPU backend, the reference, sums other elements of tensors with gaps in their rows.
    if (node.source(0).nb[0] != static_cast<uint64_t>(node.source(0).type->block_bytes)) {
        graph::FailUnsupported("the rows do not lie in one piece");
    }
    return Sum(node.Float(0), {0, 1, 2, 3});
}
Val SumRows(const Node& node) {
    return Sum(node.Float(0), {3});
}
Val MeanNode(const Node& node) {
    return Mean(node.Float(0), {3});
}

Val CumulativeSum(const Node& node) {
    return Scan(Combine::kSum, node.Float(0), 3);
}

Val ArgMax(const Node& node) {
    const Val x = node.Float(0);
    return Reshape(ArgReduce(Combine::kMax, x, 3, true), node.shape());
}

Val CountEqual(const Node& node) {
    const Val equal = map::Equal(node.Integer(0), node.Integer(1));
    return Sum(Cast(equal, ElementType::kI64), {0, 1, 2, 3});
}

Val Normalised(Val x, std::initializer_list<int64_t> axes, float epsilon) {
    const Val centred = x - Mean(x, axes);
    return centred * map::Rsqrt(Mean(centred * centred, axes) + epsilon);
}

Val Norm(const Node& node) {
    return Normalised(node.Float(0), {3}, node.number(0));
}

Val RmsNormNode(const Node& node) {
    const Val x = node.Float(0);
    return x * map::Rsqrt(Mean(x * x, {3}) + node.number(0));
}

// Groups of channels, which are the third dimension.
Val GroupNormNode(const Node& node) {
    const int64_t groups = node.integer(0), channels = node.tensor().ne[2];
    if (groups < 1 || channels % groups != 0) {
        graph::FailUnsupported("the channels are not divisible by the number of groups");
    }
    const Val x = node.Float(0);
    const Shape shape({x.dim(0), groups, channels / groups, x.dim(2), x.dim(3)});
    return Reshape(Normalised(Reshape(x, shape), {2, 3, 4}, node.number(1)), node.shape());
}

Val L2Norm(const Node& node) {
    const Val x = node.Float(0);
    return x / Max(map::Sqrt(Sum(x * x, {3})), node.number(0));
}

constexpr Operator kOperators[] = {
    {"SUM", SumNode},
    {"SUM_ROWS", SumRows},
    {"MEAN", MeanNode},
    {"CUMSUM", CumulativeSum},
    {"ARGMAX", ArgMax},
    {"COUNT_EQUAL", CountEqual},
    {"NORM", Norm},
    {"RMS_NORM", RmsNormNode},
    {"GROUP_NORM", GroupNormNode},
    {"L2_NORM", L2Norm},
};

}  // namespace

std::span<const Operator> ReductionOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend
