// Reductions and cumulative sums.
#include <cmath>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/reduce.h"

namespace fornax::torch_frontend {
namespace {

using graph::Combine;
namespace map = graph::map;

bool KeepDim(Node& node) {
    return node.Bool("keepdim", false);
}

void ImportSum(Node& node) {
    const Val x = node.As("self", graph::ComputeType(node.ResultType().element));
    node.Out(graph::Reduce(Combine::kSum, x, node.AxesOrAll("dim", x), KeepDim(node)));
}

void ImportMean(Node& node) {
    const Val x = node.As("self", graph::ComputeType(node.ResultType().element));
    node.Out(graph::Mean(x, node.AxesOrAll("dim", x), KeepDim(node)));
}

void ImportProd(Node& node) {
    const Val x = node.As("self", graph::ComputeType(node.ResultType().element));
    node.Out(graph::Reduce(Combine::kProduct, x, node.AxesOrAll("dim", x), KeepDim(node)));
}

// Bools have the least or greatest element that "and" and "or" give.
template <Combine combine>
Val Extreme(Val x, std::span<const int64_t> axes, bool keep) {
    if (x.element() == ElementType::kBool) {
        return graph::Reduce(combine == Combine::kMax ? Combine::kOr : Combine::kAnd, x, axes,
                             keep);
    }
    return graph::Reduce(combine, x, axes, keep);
}

template <Combine combine>
void ImportExtreme(Node& node) {
    const Val x = node.In("self");
    node.Out(Extreme<combine>(x, node.AxesOrAll("dim", x), KeepDim(node)));
}

// Bools as numbers, which have positions of extremes.
Val Comparable(Val x) {
    return x.element() == ElementType::kBool ? graph::Cast(x, ElementType::kU8) : x;
}

template <Combine combine>
void ImportExtremeDim(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = AxisOf(node.Int("dim"), x);
    if (x.rank() == 0) {
        node.Out(0, x);
        return node.Out(1, node.builder().Integer(ElementType::kI64, 0));
    }
    node.Out(0, Extreme<combine>(x, std::vector<int64_t>{axis}, KeepDim(node)));
    if (node.Wants(1)) {
        node.Out(1, graph::ArgReduce(combine, Comparable(x), axis, KeepDim(node)));
    }
}

template <Combine combine>
void ImportArg(Node& node) {
    const Val x = Comparable(node.In("self"));
    const Shape shape = node.ResultType().shape;
    if (!node.Has("dim") || x.rank() == 0) {
        const Val flat = graph::Reshape(x, Shape{x.shape().Volume()});
        return node.Out(graph::Reshape(graph::ArgReduce(combine, flat, 0, false), shape));
    }
    node.Out(graph::ArgReduce(combine, x, AxisOf(node.Int("dim"), x), KeepDim(node)));
}

template <Combine combine>
void ImportLogical(Node& node) {
    const Val x = node.As("self", ElementType::kBool);
    node.Out(graph::Reduce(combine, x, node.AxesOrAll("dim", x), KeepDim(node)));
}

struct Variance {
    Val variance, mean;
};

Variance VarianceOf(Node& node) {
    const Val x = graph::Cast(node.In("self"), graph::ComputeType(node.ResultType().element));
    Builder& b = node.builder();
    const std::vector<int64_t> axes = node.AxesOrAll("dim", x);
    const bool keep = KeepDim(node);
    double correction = 1;
    if (node.Has("correction")) {
        correction = node.Float("correction");
    } else if (node.Has("unbiased")) {
        correction = node.Bool("unbiased") ? 1 : 0;
    }
    Expr count = 1;
    for (const int64_t axis : axes) {
        count *= x.dim(axis);
    }
    const Val centred = x - graph::Mean(x, axes, true);
    const Val sum = graph::Reduce(Combine::kSum, centred * centred, axes, keep);
    const Val divisor = graph::Max(graph::Cast(b.Size(count), x.element()) - correction, 0);
    return {sum / divisor, graph::Mean(x, axes, keep)};
}

void ImportVar(Node& node) {
    node.Out(VarianceOf(node).variance);
}

void ImportStd(Node& node) {
    node.Out(map::Sqrt(VarianceOf(node).variance));
}

void ImportVarMean(Node& node) {
    const Variance result = VarianceOf(node);
    node.Out(0, result.variance);
    node.Out(1, result.mean);
}

template <Combine combine>
void ImportCumulative(Node& node) {
    const Val x = node.As("self", graph::ComputeType(node.ResultType().element));
    if (x.rank() == 0) {
        return node.Out(x);
    }
    node.Out(graph::Scan(combine, x, AxisOf(node.Int("dim"), x)));
}

// Running extremes, and the last place of each. A NaN stays.
template <Combine combine>
void ImportRunningExtreme(Node& node) {
    const Val given = node.In("self");
    Builder& b = node.builder();
    if (given.rank() == 0) {
        node.Out(0, given);
        return node.Out(1, b.Integer(ElementType::kI64, 0));
    }
    const int64_t axis = AxisOf(node.Int("dim"), given);
    const Val x = Comparable(given), extreme = graph::Scan(combine, x, axis);
    node.Out(0, extreme);
    if (node.Wants(1)) {
        Val is_new = map::Equal(x, extreme);
        if (graph::IsFloat(x.element())) {
            is_new = graph::Or(is_new, map::IsNan(x));
        }
        const Val place = b.Iota(ElementType::kI64, x.shape(), axis);
        node.Out(1, graph::Scan(Combine::kMax, graph::Where(is_new, place, graph::Like(place, 0)),
                                axis));
    }
}

void ImportLogSumExp(Node& node) {
    const Val x = node.As("self", graph::ComputeType(node.ResultType().element));
    if (x.rank() == 0) {
        return node.Out(x);
    }
    node.Out(graph::ReduceLogSumExp(x, node.AxesOrAll("dim", x), KeepDim(node)));
}

void ImportVectorNorm(Node& node) {
    const Val x = graph::Cast(node.In("self"), graph::ComputeType(node.ResultType().element));
    const std::vector<int64_t> axes = node.AxesOrAll("dim", x);
    const bool keep = KeepDim(node);
    const double order = node.Float("ord", 2);
    const Val size = map::Abs(x);
    if (order == 2) {
        return node.Out(map::Sqrt(graph::Reduce(Combine::kSum, x * x, axes, keep)));
    }
    if (order == 1) {
        return node.Out(graph::Reduce(Combine::kSum, size, axes, keep));
    }
    if (order == 0) {
        const Val counts = graph::Cast(graph::Not(graph::Equal(x, 0)), x.element());
        return node.Out(graph::Reduce(Combine::kSum, counts, axes, keep));
    }
    if (std::isinf(order)) {
        return node.Out(graph::Reduce(order > 0 ? Combine::kMax : Combine::kMin, size, axes, keep));
    }
    const Val sum = graph::Reduce(Combine::kSum, map::Pow(size, graph::Like(x, order)), axes, keep);
    node.Out(map::Pow(sum, graph::Like(sum, 1 / order)));
}

constexpr OperatorEntry kOperators[] = {
    {"all.default", ImportLogical<Combine::kAnd>},
    {"all.dim", ImportLogical<Combine::kAnd>},
    {"all.dims", ImportLogical<Combine::kAnd>},
    {"amax.default", ImportExtreme<Combine::kMax>},
    {"amin.default", ImportExtreme<Combine::kMin>},
    {"any.default", ImportLogical<Combine::kOr>},
    {"any.dim", ImportLogical<Combine::kOr>},
    {"any.dims", ImportLogical<Combine::kOr>},
    {"argmax.default", ImportArg<Combine::kMax>},
    {"argmin.default", ImportArg<Combine::kMin>},
    {"cummax.default", ImportRunningExtreme<Combine::kMax>},
    {"cummin.default", ImportRunningExtreme<Combine::kMin>},
    {"cumprod.default", ImportCumulative<Combine::kProduct>},
    {"cumsum.default", ImportCumulative<Combine::kSum>},
    {"linalg_vector_norm.default", ImportVectorNorm},
    {"logsumexp.default", ImportLogSumExp},
    {"max.default", ImportExtreme<Combine::kMax>},
    {"max.dim", ImportExtremeDim<Combine::kMax>},
    {"mean.default", ImportMean},
    {"mean.dim", ImportMean},
    {"min.default", ImportExtreme<Combine::kMin>},
    {"min.dim", ImportExtremeDim<Combine::kMin>},
    {"prod.default", ImportProd},
    {"prod.dim_int", ImportProd},
    {"std.correction", ImportStd},
    {"sum.default", ImportSum},
    {"sum.dim_IntList", ImportSum},
    {"var.correction", ImportVar},
    {"var.dim", ImportVar},
    {"var_mean.correction", ImportVarMean},
};

}  // namespace

std::span<const OperatorEntry> ReductionOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
