// Sorting and its parts.
#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"

namespace fornax::torch_frontend {
namespace {

// Bools are sorted as numbers.
graph::Sorted SortAny(Val x, int64_t axis, bool descending, const Expr& count) {
    const ElementType type = x.element();
    const bool bools = type == ElementType::kBool;
    graph::Sorted sorted =
        graph::Sort(bools ? graph::Cast(x, ElementType::kU8) : x, axis, descending, count);
    sorted.values = graph::Cast(sorted.values, type);
    return sorted;
}

void OutSorted(Node& node, Val x, int64_t axis, bool descending, const Expr& count) {
    const graph::Sorted sorted = SortAny(AtLeastOne(x), axis, descending, count);
    const auto out = [&](size_t index, Val value) {
        node.Out(index, x.rank() == 0 ? graph::Reshape(value, Shape{}) : value);
    };
    out(0, sorted.values);
    out(1, sorted.positions);
}

// Ours is stable.
void ImportSort(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = AxisOf(node.Int("dim", -1), x);
    OutSorted(node, x, axis, node.Bool("descending", false), AtLeastOne(x).dim(axis));
}

void ImportTopK(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = AxisOf(node.Int("dim", -1), x);
    const Expr count = node.Size("k");
    OutSorted(node, x, axis, node.Bool("largest", true), count);
}

void ImportArgsort(Node& node) {
    const Val x = node.In("self");
    const int64_t axis = AxisOf(node.Int("dim", -1), x);
    const Val positions =
        SortAny(AtLeastOne(x), axis, node.Bool("descending", false), AtLeastOne(x).dim(axis))
            .positions;
    node.Out(x.rank() == 0 ? graph::Reshape(positions, Shape{}) : positions);
}

constexpr OperatorEntry kOperators[] = {
    {"argsort.default", ImportArgsort}, {"argsort.stable", ImportArgsort},
    {"sort.default", ImportSort},       {"sort.stable", ImportSort},
    {"topk.default", ImportTopK},
};

}  // namespace

std::span<const OperatorEntry> SortOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
