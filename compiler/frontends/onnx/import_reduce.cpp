// Reductions, positions of extremes, cumulative sums, sorting.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/frontends/onnx/operator_families.h"
#include "compiler/graph/build/activations.h"
#include "compiler/graph/build/reduce.h"

namespace fornax::onnx_frontend {
namespace {

using graph::Combine;

struct ReduceArguments {
    std::vector<int64_t> axes;
    bool keep = true;
};

// The axes are an input since opset 18 (ReduceSum: 13).
ReduceArguments ReadArguments(Node& node, int64_t since) {
    ReduceArguments result;
    const Val x = node.In(0);
    result.keep = node.Int("keepdims", 1) != 0;
    if (node.version() >= since && node.Has(1)) {
        result.axes = node.Integers(1, "the axes");
    } else {
        result.axes = node.Ints("axes");
    }
    if (result.axes.empty() && node.Int("noop_with_empty_axes", 0) == 0) {
        for (int64_t i = 0; i < x.rank(); ++i) {
            result.axes.push_back(i);
        }
    }
    return result;
}

template <Val (*function)(Val, std::span<const int64_t>, bool), int64_t since>
void ImportReduce(Node& node) {
    const ReduceArguments arguments = ReadArguments(node, since);
    node.Out(function(node.In(0), arguments.axes, arguments.keep));
}

template <Combine combine>
Val Plain(Val x, std::span<const int64_t> axes, bool keep) {
    return graph::Reduce(combine, x, axes, keep);
}

// The operator takes bools too; their greatest element is their "or".
template <Combine combine>
Val Extreme(Val x, std::span<const int64_t> axes, bool keep) {
    if (x.element() == ElementType::kBool) {
        return graph::Reduce(combine == Combine::kMax ? Combine::kOr : Combine::kAnd, x, axes,
                             keep);
    }
    return graph::Reduce(combine, x, axes, keep);
}

template <Combine combine>
void ImportArg(Node& node) {
    node.Out(graph::ArgReduce(combine, node.In(0), node.Int("axis", 0),
                              node.Int("keepdims", 1) != 0, node.Int("select_last_index", 0) != 0));
}

template <Combine combine>
void ImportCumulative(Node& node) {
    node.Out(graph::Scan(combine, node.In(0), node.Integer(1, "the axis"),
                         node.Int("exclusive", 0) != 0, node.Int("reverse", 0) != 0));
}

void ImportTopK(Node& node) {
    const Val x = node.In(0);
    const int64_t axis = node.Int("axis", -1);
    Expr count;
    if (node.version() >= 10) {
        const std::vector<Expr> given = node.Sizes(1, "the count K");
        if (given.size() != 1) {
            FailInvalid(fmt::format("the count K has {} elements, not 1", given.size()));
        }
        count = given[0];
    } else {
        count = node.Int("k");
    }
    const graph::Sorted sorted = graph::Sort(x, axis, node.Int("largest", 1) != 0, count);
    node.Out(0, sorted.values);
    node.Out(1, sorted.positions);
}

constexpr OperatorEntry kOperators[] = {
    {"ArgMax", 1, ImportArg<Combine::kMax>},
    {"ArgMin", 1, ImportArg<Combine::kMin>},
    {"CumProd", 2, ImportCumulative<Combine::kProduct>},
    {"CumSum", 2, ImportCumulative<Combine::kSum>},
    {"ReduceL1", 1, ImportReduce<graph::ReduceL1, 18>},
    {"ReduceL2", 1, ImportReduce<graph::ReduceL2, 18>},
    {"ReduceLogSum", 1, ImportReduce<graph::ReduceLogSum, 18>},
    {"ReduceLogSumExp", 1, ImportReduce<graph::ReduceLogSumExp, 18>},
    {"ReduceMax", 1, ImportReduce<Extreme<Combine::kMax>, 18>},
    {"ReduceMean", 1, ImportReduce<graph::ReduceMean, 18>},
    {"ReduceMin", 1, ImportReduce<Extreme<Combine::kMin>, 18>},
    {"ReduceProd", 1, ImportReduce<Plain<Combine::kProduct>, 18>},
    {"ReduceSum", 1, ImportReduce<Plain<Combine::kSum>, 13>},
    {"ReduceSumSquare", 1, ImportReduce<graph::ReduceSumSquare, 18>},
    {"TopK", 1, ImportTopK},
};

}  // namespace

std::span<const OperatorEntry> ReductionOperators() {
    return kOperators;
}

}  // namespace fornax::onnx_frontend
