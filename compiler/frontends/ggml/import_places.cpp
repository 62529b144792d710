// What depends on the places of elements: padding, rolling, resizing, triangles, sorts, series.
#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/frontends/ggml/node.h"
#include "compiler/frontends/ggml/view.h"
#include "compiler/graph/build/index.h"

namespace fornax::ggml_frontend {
namespace {

using graph::ElementType;
using graph::Shape;
using graph::Val;

// The elements along an axis in the order that `place` gives.
Val Rearranged(Val x, int64_t axis, int64_t count, const std::function<int64_t(int64_t)>& place) {
    std::vector<int64_t> places;
    bool same = x.shape().Constants()->at(static_cast<size_t>(axis)) == count;
    for (int64_t i = 0; i < count; ++i) {
        places.push_back(place(i));
        same &= places.back() == i;
    }
    return same ? x : graph::Take(x, x.builder().Integers(places), axis);
}

int64_t Wrapped(int64_t place, int64_t size) {
    const int64_t rest = place % size;
    return rest < 0 ? rest + size : rest;
}

Val PadNode(const Node& node) {
    std::vector<graph::Expr> low, high;
    for (size_t axis = 0; axis < kDims; ++axis) {
        const size_t d = kDims - 1 - axis;
        low.emplace_back(node.integer(2 * d));
        high.emplace_back(node.integer(2 * d + 1));
    }
    const Val x = node.Raw(0);
    if (node.integer(8) == 0) {
        return Pad(x, 0, low, high);
    }
    Val result = x;  // around
    for (size_t d = 0; d < kDims; ++d) {
        const int64_t size = node.source(0).ne[d], before = node.integer(2 * d);
        result = Rearranged(result, static_cast<int64_t>(kDims - 1 - d), node.tensor().ne[d],
                            [&](int64_t i) { return Wrapped(i - before, size); });
    }
    return result;
}

Val PadMirrored(const Node& node) {
    const int64_t size = node.source(0).ne[0], before = node.integer(0);
    if (before >= size || node.integer(1) >= size) {
        graph::FailInvalid("more is mirrored than there is");
    }
    return Rearranged(node.Raw(0), 3, node.tensor().ne[0], [&](int64_t i) {
        const int64_t place = std::abs(i - before);
        return place < size ? place : 2 * (size - 1) - place;
    });
}

Val Roll(const Node& node) {
    Val result = node.Raw(0);
    for (size_t d = 0; d < kDims; ++d) {
        const int64_t size = node.source(0).ne[d], shift = node.integer(d);
        result = Rearranged(result, static_cast<int64_t>(kDims - 1 - d), size,
                            [&](int64_t i) { return Wrapped(i - shift, size); });
    }
    return result;
}

// --- Series --------------------------------------------------------------------------------------

Val Arange(const Node& node) {
    const Val place = node.builder().Iota(ElementType::kF32, node.shape(), 3);
    return place * node.number(2) + node.number(0);
}

// Cosines and sines of each number with falling frequencies.
Val TimestepEmbedding(const Node& node) {
    const int64_t size = node.integer(0), half = size / 2;
    if (half < 1 || size != node.tensor().ne[0]) {
        graph::FailInvalid("the result does not have the size of the parameters");
    }
    std::vector<float> frequencies;
    for (int64_t i = 0; i < half; ++i) {
        frequencies.push_back(std::exp(-std::log(static_cast<float>(node.integer(1))) *
                                       static_cast<float>(i) / static_cast<float>(half)));
    }
    graph::Builder& builder = node.builder();
    const int64_t count = node.source(0).ne[0];
    const Val angle = Reshape(node.Float(0), Shape({1, 1, count, 1})) *
                      Reshape(builder.Constant(graph::Tensor::FromFloats({half}, frequencies)),
                              Shape({1, 1, 1, half}));
    Val result = graph::Concat({map::Cos(angle), map::Sin(angle)}, 3);
    if (size % 2 != 0) {
        result = Pad(result, 0, {0, 0, 0, 0}, {0, 0, 0, 1});
    }
    return result;
}

Val Fill(const Node& node) {
    return node.builder().Full(ElementType::kF32, node.shape(), node.number(0));
}

// --- Triangles -----------------------------------------------------------------------------------

enum class Triangle : int32_t { kUpperDiagonal = 0, kUpper = 1, kLowerDiagonal = 2, kLower = 3 };

Val TriangleNode(const Node& node) {
    const Val x = node.Float(0);
    const Val row = node.builder().Iota(ElementType::kI32, node.shape(), 2);
    const Val column = node.builder().Iota(ElementType::kI32, node.shape(), 3);
    Val kept;
    switch (static_cast<Triangle>(node.integer(0))) {
        case Triangle::kUpperDiagonal:
            kept = map::LessEqual(row, column);
            break;
        case Triangle::kUpper:
            kept = map::Less(row, column);
            break;
        case Triangle::kLowerDiagonal:
            kept = map::LessEqual(column, row);
            break;
        case Triangle::kLower:
            kept = map::Less(column, row);
            break;
        default:
            graph::FailUnsupported("this triangle is not covered");
    }
    return Where(kept, x, Like(x, 0));
}

Val Diagonal(const Node& node) {
    const Val x = node.Float(0);
    const Val row = node.builder().Iota(ElementType::kI32, node.shape(), 2);
    const Val column = node.builder().Iota(ElementType::kI32, node.shape(), 3);
    return Where(map::Equal(row, column), BroadcastTo(x, node.shape()), Like(x, 0));
}

// --- Sorts ---------------------------------------------------------------------------------------

Val ArgSort(const Node& node) {
    const bool descending = node.integer(0) != 0;
    return Sort(node.Float(0), 3, descending, node.tensor().ne[0]).positions;
}

Val TopK(const Node& node) {
    return Sort(node.Float(0), 3, true, node.tensor().ne[0]).positions;
}

// --- Parts ---------------------------------------------------------------------------------------

// The part of source 0 that the parameters name (strides and an offset in bytes), of the sizes of
// source 1.
StridedView PartOf(const Node& node) {
    const Tensor &whole = node.source(0), &part = node.source(1);
    const int64_t unit = whole.type->block_bytes;
    StridedView view;
    view.sizes = part.ne;
    view.strides[0] = 1;
    for (size_t d = 1; d < kDims; ++d) {
        view.strides[d] = node.integer(d - 1);
    }
    view.offset = node.integer(3);
    for (int64_t* number : {&view.strides[1], &view.strides[2], &view.strides[3], &view.offset}) {
        if (whole.type->is_quantised() || *number % unit != 0) {
            graph::FailUnsupported("this part is not covered");
        }
        *number /= unit;
    }
    return view;
}

Val WithPart(const Node& node, bool added) {
    const StridedView view = PartOf(node);
    const Val whole = node.Raw(0);
    const Val flat = Reshape(whole, Shape({node.source(0).count()}));
    Val part = Cast(node.Raw(1), whole.element());
    if (added) {
        part = ReadView(flat, view) + part;
    }
    return Reshape(WriteView(flat, view, part), node.shape());
}

Val Accumulate(const Node& node) {
    return WithPart(node, true);
}
Val Set(const Node& node) {
    return WithPart(node, false);
}

constexpr Operator kOperators[] = {
    {"PAD", PadNode},
    {"PAD_REFLECT_1D", PadMirrored},
    {"ROLL", Roll},
    {"ARANGE", Arange},
    {"TIMESTEP_EMBEDDING", TimestepEmbedding},
    {"FILL", Fill},
    {"TRI", TriangleNode},
    {"DIAG", Diagonal},
    {"ARGSORT", ArgSort},
    {"TOP_K", TopK},
    {"ACC", Accumulate},
    {"SET", Set},
};

}  // namespace

std::span<const Operator> PlaceOperators() {
    return kOperators;
}

}  // namespace fornax::ggml_frontend
