// Concatenations and scatters as loop kernels.
#include "compiler/graph/schedule/own_kernels.h"

#include <algorithm>

namespace fornax::graph {

using loop::ScalarId;
using Indices = std::vector<Expr>;

Indices AxisLast(Indices index, size_t axis) {
    const auto at = index.begin() + static_cast<ptrdiff_t>(axis);
    std::rotate(at, at + 1, index.end());
    return index;
}

namespace {

// The most operands of a concatenation in one kernel.
constexpr size_t kMaxNeighbours = 16;

// What computing an operand takes.
struct Part {
    std::vector<ValueId> read;  // the values in memory
    size_t scalars = 0;
};

Part PartOf(const Graph& graph, const std::vector<bool>& realized, ValueId operand) {
    KernelBuilder builder(graph, realized, "concat");
    builder.At(operand, builder.AddParallel(graph.ShapeOf(operand)));
    Part part{builder.buffer_values(), builder.size()};
    std::sort(part.read.begin(), part.read.end());
    return part;
}

}  // namespace

// Each operand is computed straight into its part of the result. Neighbours of one shape that are
// made of the same values have one kernel, which reads these once.
void AddConcat(const Graph& graph,
               std::vector<bool>& realized,
               const Node& node,
               PlanBuilder& plan) {
    const auto axis = static_cast<size_t>(std::get<op::Concat>(node.operation).axis);
    std::vector<Part> parts;
    for (const ValueId operand : node.operands) {
        parts.push_back(PartOf(graph, realized, operand));
    }
    Expr begin;
    for (size_t first = 0, end = 0; first < parts.size(); first = end) {
        const Shape& shape = graph.ShapeOf(node.operands[first]);
        size_t scalars = parts[first].scalars;
        end = first + 1;
        while (end < std::min(parts.size(), first + kMaxNeighbours) &&
               graph.ShapeOf(node.operands[end]) == shape && !parts[first].read.empty() &&
               parts[end].read == parts[first].read &&
               scalars + parts[end].scalars <= kMostScalars) {
            scalars += parts[end++].scalars;
        }
        KernelBuilder builder(graph, realized, "concat");
        const Indices index = builder.AddParallel(shape);
        for (size_t i = first; i < end; ++i) {
            const ScalarId value = builder.At(node.operands[i], index);
            Indices place = index;
            place[axis] += begin;
            builder.Store(node.results[0], std::move(place), value);
            begin += shape[axis];
        }
        if (shape.Volume() != Expr(0)) {
            plan.AddDispatch(node.name, builder);
        }
    }
}

// A copy unless it is in place, then the updates. Dimensions that an update's own place gives are
// parallel; the others, whose updates may meet in one element, follow each other.
void AddScatter(const Graph& graph,
                std::vector<bool>& realized,
                const Node& node,
                PlanBuilder& plan,
                bool in_place) {
    const auto& scatter = std::get<op::Scatter>(node.operation);
    const ValueId data = node.operands[0], updates = node.operands[1], result = node.results[0];
    if (!in_place) {
        KernelBuilder builder(graph, realized, "scatter_copy");
        const Indices index = builder.AddParallel(graph.ShapeOf(data));
        builder.Store(result, index, builder.At(data, index));
        plan.AddDispatch(node.name, builder);
    }
    KernelBuilder builder(graph, realized, "scatter");
    const Shape& shape = graph.ShapeOf(updates);
    Indices index;
    for (size_t i = 0; i < shape.rank(); ++i) {
        const bool parallel = std::find(scatter.sources.begin(), scatter.sources.end(),
                                        static_cast<int64_t>(i)) != scatter.sources.end();
        index.push_back(parallel ? builder.AddParallel(shape[i]) : builder.AddSequential(shape[i]));
    }
    Indices place;
    for (const int64_t source : scatter.sources) {
        if (source >= 0) {
            place.push_back(index[static_cast<size_t>(source)]);
        } else {
            const ScalarId at = builder.At(node.operands[static_cast<size_t>(1 - source)], index);
            place.push_back(builder.AsIndex(builder.Cast(at, ElementType::kI64)));
        }
    }
    ScalarId value = builder.At(updates, index);
    if (scatter.combine != Combine::kReplace) {
        value = builder.Combined(scatter.combine, builder.FreshLoad(result, place), value);
    }
    builder.Store(result, std::move(place), value);
    plan.AddDispatch(node.name, builder);
}

}  // namespace fornax::graph
