// Concatenations, scans, sorts and scatters as loop kernels.
#include "compiler/graph/schedule/own_kernels.h"

namespace fornax::graph {

using loop::ScalarId;
using Indices = std::vector<Expr>;

// Each operand is computed straight into its part of the result.
void AddConcat(const Graph& graph,
               std::vector<bool>& realized,
               const Node& node,
               PlanBuilder& plan) {
    const auto axis = static_cast<size_t>(std::get<op::Concat>(node.operation).axis);
    Expr begin;
    for (const ValueId operand : node.operands) {
        const Shape& shape = graph.ShapeOf(operand);
        if (shape.Volume() != Expr(0)) {
            KernelBuilder builder(graph, realized, "concat");
            const Indices index = builder.AddParallel(shape);
            const ScalarId value = builder.At(operand, index);
            Indices place = index;
            place[axis] += begin;
            builder.Store(node.results[0], std::move(place), value);
            plan.AddDispatch(node.name, builder);
        }
        begin += shape[axis];
    }
}

// An invocation goes along the axis, and combines the element with what it stored before.
void AddScan(const Graph& graph, std::vector<bool>& realized, const Node& node, PlanBuilder& plan) {
    const auto& scan = std::get<op::Scan>(node.operation);
    const auto axis = static_cast<size_t>(scan.axis);
    const TensorType& type = graph.TypeOf(node.results[0]);
    KernelBuilder builder(graph, realized, "scan");
    Indices index;
    for (size_t i = 0; i < type.shape.rank(); ++i) {
        index.push_back(i == axis ? Expr(0) : builder.AddParallel(type.shape[i]));
    }
    const Expr number = builder.AddSequential(type.shape[axis]);
    const auto place = [&](const Expr& n) {
        Indices result = index;
        result[axis] = scan.reverse ? type.shape[axis] - 1 - n : n;
        return result;
    };
    const ScalarId neutral =
        builder.Constant(type.element, NeutralElement(scan.combine, type.element));
    const ScalarId before = builder.FreshLoad(node.results[0], place(number - 1), neutral);
    ScalarId value;
    if (scan.exclusive) {
        // The element before, where there is one.
        const ScalarId first =
            builder.Map(ScalarFunction::kLess, {builder.Integer(number), builder.Integer(1)});
        const ScalarId previous = builder.At(node.operands[0], place(number - 1));
        value = builder.Map(ScalarFunction::kSelect, {first, neutral, previous});
    } else {
        value = builder.At(node.operands[0], place(number));
    }
    builder.Store(node.results[0], place(number), builder.Combined(scan.combine, before, value));
    plan.AddDispatch(node.name, builder);
}

namespace {

// Whether element a stands before b: less (or greater, when descending); NaN is the greatest.
ScalarId StandsBefore(KernelBuilder& builder,
                      ScalarId a,
                      ScalarId b,
                      bool descending,
                      bool is_float) {
    if (descending) {
        std::swap(a, b);
    }
    const ScalarId less = builder.Map(ScalarFunction::kLess, {a, b});
    if (!is_float) {
        return less;
    }
    const ScalarId a_nan = builder.Map(ScalarFunction::kIsNan, {a});
    const ScalarId b_nan = builder.Map(ScalarFunction::kIsNan, {b});
    const ScalarId only_b =
        builder.Map(ScalarFunction::kAnd, {builder.Map(ScalarFunction::kNot, {a_nan}), b_nan});
    return builder.Map(ScalarFunction::kOr, {less, only_b});
}

}  // namespace

// An element's rank is the number of elements that stand before it; then each goes to its place.
void AddSort(const Graph& graph, std::vector<bool>& realized, const Node& node, PlanBuilder& plan) {
    const auto& sort = std::get<op::Sort>(node.operation);
    const auto axis = static_cast<size_t>(sort.axis);
    const TensorType& type = graph.TypeOf(node.operands[0]);
    // Bools have no order in kernels; as bytes they do.
    const bool is_bool = type.element == ElementType::kBool;
    const TensorType rank_type = {ElementType::kI32, type.shape};
    const BlockId ranks = plan.AddBlock(node.name + ".rank", rank_type, BlockKind::kTemporary);
    {
        KernelBuilder builder(graph, realized, "sort_rank");
        const Indices index = builder.AddParallel(type.shape);
        const loop::Loop others = builder.NewReductionLoop(type.shape[axis]);
        Indices other = index;
        other[axis] = others.variable;
        const auto element = [&](const Indices& at) {
            const ScalarId value = builder.At(node.operands[0], at);
            return is_bool ? builder.Cast(value, ElementType::kU8) : value;
        };
        const ScalarId mine = element(index), its = element(other);
        const bool is_float = IsFloat(type.element);
        const ScalarId before = StandsBefore(builder, its, mine, sort.descending, is_float);
        const ScalarId behind = StandsBefore(builder, mine, its, sort.descending, is_float);
        const ScalarId earlier =
            builder.Map(ScalarFunction::kLess,
                        {builder.Integer(others.variable), builder.Integer(index[axis])});
        const ScalarId equal_and_earlier = builder.Map(
            ScalarFunction::kAnd, {builder.Map(ScalarFunction::kNot, {behind}), earlier});
        const ScalarId counts = builder.Map(ScalarFunction::kOr, {before, equal_and_earlier});
        const ScalarId rank =
            builder.Reduce(Combine::kSum, {others}, builder.Cast(counts, ElementType::kI32));
        builder.Store(builder.AddBuffer(rank_type), index, rank);
        plan.AddDispatch(node.name, builder, {ranks});
    }
    KernelBuilder builder(graph, realized, "sort_place");
    const Indices index = builder.AddParallel(type.shape);
    const ScalarId rank = builder.LoadFrom(builder.AddBuffer(rank_type), index);
    Indices place = index;
    place[axis] = builder.AsIndex(builder.Cast(rank, ElementType::kI64));
    // Ranks behind the last wanted one are outside of the results, where nothing is stored.
    builder.Store(node.results[0], place, builder.At(node.operands[0], index));
    builder.Store(node.results[1], place, builder.Integer(index[axis]));
    plan.AddDispatch(node.name, builder, {ranks});
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
