// Scans: by the template along rows, serially where many scans lie side by side.
//
// The template scans rows of 32 or 64 bits. Where the operand is no such tensor in memory, a loop
// kernel makes one, and another one stores the results where and as what they belong.
#include <fmt/format.h>

#include "compiler/graph/schedule/own_kernels.h"

namespace fornax::graph {

using loop::ScalarId;
using Indices = std::vector<Expr>;

namespace {

// So many scans side by side use the device without the template; rows up to this are not worth it.
constexpr int64_t kManyScans = 16;
constexpr int64_t kShortScan = 64;

// An invocation goes along the axis, and combines the element with what it stored before.
void AddSerialScan(const Graph& graph,
                   const std::vector<bool>& realized,
                   const Node& node,
                   PlanBuilder& plan) {
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

// The type that the template computes a scan with: narrower floats and integers are rounded or
// wrap once they are stored, as they would be in each step.
std::optional<ElementType> ScannedAs(ElementType element, const op::Scan& scan) {
    const bool wide = BytesOf(element) == 8;
    const ElementType scanned = IsFloat(element) ? (wide ? ElementType::kF64 : ElementType::kF32)
                                                 : (wide ? ElementType::kI64 : ElementType::kI32);
    if (scan.combine == Combine::kSum || scan.combine == Combine::kProduct) {
        return element == ElementType::kBool ? std::nullopt : std::optional(scanned);
    }
    // The greatest number of another type, with which an exclusive scan begins, is another one,
    // and numbers without a sign have another order where they have as many bits.
    const bool keeps_order =
        element == scanned || (!scan.exclusive && BytesOf(element) < BytesOf(scanned));
    return keeps_order ? std::optional(scanned) : std::nullopt;
}

std::optional<int64_t> ChoiceOf(Combine combine) {
    switch (combine) {
        case Combine::kSum:
            return 0;
        case Combine::kProduct:
            return 1;
        case Combine::kMin:
            return 2;
        case Combine::kMax:
            return 3;
        default:
            return std::nullopt;
    }
}

std::optional<TemplateKernel> TemplateOf(const Graph& graph, const Node& node) {
    const auto& scan = std::get<op::Scan>(node.operation);
    const TensorType& type = graph.TypeOf(node.results[0]);
    const auto axis = static_cast<size_t>(scan.axis);
    Expr rows(1), inner(1);
    for (size_t i = 0; i < type.shape.rank(); ++i) {
        (i > axis ? inner : rows) *= i == axis ? Expr(1) : type.shape[i];
    }
    const SizeFacts& sizes = graph.sizes();
    const Expr& length = type.shape[axis];
    const std::optional<ElementType> element = ScannedAs(type.element, scan);
    const std::optional<int64_t> combine = ChoiceOf(scan.combine);
    if (!element || !combine || sizes.Hint(inner) >= kManyScans ||
        sizes.Hint(length) <= kShortScan) {
        return std::nullopt;
    }
    Result<TemplateKernel> kernel = TemplateKernel::Make(
        fmt::format("scan_rows_{}", Name(*element)),
        {*combine, scan.exclusive ? 1 : 0, scan.reverse ? 1 : 0, rows * inner, length},
        sizes.ranges());
    return kernel.ok() ? std::optional(*std::move(kernel)) : std::nullopt;
}

// The same bits in a signed type, other conversions by value.
ScalarId Converted(KernelBuilder& builder, ScalarId value, ElementType from, ElementType to) {
    return BytesOf(from) == BytesOf(to) ? builder.Bitcast(value, to) : builder.Cast(value, to);
}

}  // namespace

void AddScan(const Graph& graph, std::vector<bool>& realized, const Node& node, PlanBuilder& plan) {
    std::optional<TemplateKernel> kernel;
    if (plan.may_have_templates()) {
        kernel = TemplateOf(graph, node);
    }
    if (!kernel) {
        return AddSerialScan(graph, realized, node, plan);
    }
    const auto axis = static_cast<size_t>(std::get<op::Scan>(node.operation).axis);
    const ValueId operand = node.operands[0], result = node.results[0];
    const TensorType& type = graph.TypeOf(result);
    const Indices dims(type.shape.dims().begin(), type.shape.dims().end());
    const TensorType scanned = {kernel->buffers()[0].type.element, Shape(AxisLast(dims, axis))};
    const bool is_direct = scanned.element == type.element && scanned.shape == type.shape;
    BlockId values, results;
    if (is_direct && realized[operand.value()]) {
        values = plan.BlockOf(operand);
    } else {
        values = plan.AddTemporary(node.name, "values", scanned,
                                   "the kernel that scans reads rows of a type of its own");
        KernelBuilder builder(graph, realized, "scan_values");
        const Indices index = builder.AddParallel(type.shape);
        const ScalarId value =
            Converted(builder, builder.At(operand, index), type.element, scanned.element);
        builder.Store(builder.AddBuffer(scanned), AxisLast(index, axis), value);
        plan.AddDispatch(node.name, builder, {values});
    }
    results = is_direct ? plan.BlockOf(result)
                        : plan.AddTemporary(node.name, "rows", scanned,
                                            "the kernel that scans writes rows of a type of its "
                                            "own");
    plan.AddTemplate(node.name, *std::move(kernel), {values, results});
    if (!is_direct) {
        KernelBuilder builder(graph, realized, "scan_results");
        const Indices index = builder.AddParallel(type.shape);
        const ScalarId value = builder.LoadFrom(builder.AddBuffer(scanned), AxisLast(index, axis));
        builder.Store(result, index, Converted(builder, value, scanned.element, type.element));
        plan.AddDispatch(node.name, builder, {results});
    }
}

}  // namespace fornax::graph
