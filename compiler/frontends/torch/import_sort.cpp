// Sorting and its parts.
#include <fmt/format.h>

#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/index.h"

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

// How many elements of each sorted row are less than (or equal to) a value.
void OutPositions(Node& node, Val sorted, Val value, bool right) {
    if (sorted.rank() < 1) {
        FailInvalid("the sorted sequence has no dimensions");
    }
    const Operand operands[] = {{sorted}, {value}};
    const ElementType type = Promote(operands);
    sorted = graph::Cast(sorted, type);
    value = graph::Cast(value, type);
    // Rows of their own, or one for all values.
    const Val rows = sorted.rank() == 1 ? sorted : graph::Unsqueeze(sorted, -2);
    const Val each = graph::Unsqueeze(value, -1);
    // So written, a NaN comes behind all.
    const Val before =
        graph::Not(right ? graph::map::Less(each, rows) : graph::map::LessEqual(each, rows));
    node.Out(
        graph::Reduce(graph::Combine::kSum, graph::Cast(before, ElementType::kI64), {-1}, false));
}

bool IsRight(Node& node) {
    return node.Bool("right", false) || node.Text("side", "left") == "right";
}

void ImportSearchSorted(Node& node) {
    const Val sorted = node.In("sorted_sequence");
    OutPositions(node,
                 node.Has("sorter") ? graph::TakeAlong(sorted, node.In("sorter"), -1) : sorted,
                 node.In("self"), IsRight(node));
}

void ImportBucketize(Node& node) {
    OutPositions(node, node.In("boundaries"), node.In("self"), IsRight(node));
}

constexpr OperatorEntry kOperators[] = {
    {"argsort.default", ImportArgsort},
    {"argsort.stable", ImportArgsort},
    {"bucketize.Scalar", ImportBucketize},
    {"bucketize.Tensor", ImportBucketize},
    {"searchsorted.Scalar", ImportSearchSorted},
    {"searchsorted.Tensor", ImportSearchSorted},
    {"sort.default", ImportSort},
    {"sort.stable", ImportSort},
    {"topk.default", ImportTopK},
};

}  // namespace

std::span<const OperatorEntry> SortOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
