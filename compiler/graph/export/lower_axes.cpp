// What combines elements along axes, and products.
#include <fmt/format.h>

#include "compiler/graph/build/build_error.h"
#include "compiler/graph/export/lowering.h"

namespace fornax::graph {
namespace {

std::string_view ReductionOf(Combine combine) {
    switch (combine) {
        case Combine::kSum:
            return "ReduceSum";
        case Combine::kProduct:
            return "ReduceProd";
        case Combine::kMin:
            return "ReduceMin";
        case Combine::kMax:
            return "ReduceMax";
        default:
            FailUnsupported(fmt::format("{} has no reduction of ONNX", Name(combine)));
    }
}

// The type that reductions are computed in; those of bool are those of integers.
ElementType ReduceType(ElementType element) {
    return element == ElementType::kBool ? ElementType::kI64 : WorkType(element);
}

}  // namespace

Names LowerReduce(Lowering& to, const Node& node, const op::Reduce& reduce) {
    const ElementType element = to.TypeOf(node.operands[0]).element;
    Combine combine = reduce.combine;
    if (element == ElementType::kBool) {
        combine = combine == Combine::kAnd  ? Combine::kMin
                  : combine == Combine::kOr ? Combine::kMax
                                            : combine;
    }
    const ElementType work = ReduceType(element);
    std::string x = to.CastTo(to.NameOf(node.operands[0]), element, work);
    if (!reduce.axes.empty()) {
        x = to.Emit(ReductionOf(combine), {x, to.Ints(reduce.axes)}, {{"keepdims", int64_t{0}}});
    }
    return {to.CastTo(x, work, element)};
}

Names LowerArgReduce(Lowering& to, const Node& node, const op::ArgReduce& reduce) {
    const ElementType element = to.TypeOf(node.operands[0]).element;
    const ElementType work = ReduceType(element);
    return {to.Emit(reduce.combine == Combine::kMax ? "ArgMax" : "ArgMin",
                    {to.CastTo(to.NameOf(node.operands[0]), element, work)},
                    {{"axis", reduce.axis},
                     {"keepdims", int64_t{0}},
                     {"select_last_index", int64_t{reduce.last}}})};
}

Names LowerScan(Lowering& to, const Node& node, const op::Scan& scan) {
    if (scan.combine != Combine::kSum) {
        FailUnsupported(fmt::format("a scan by {} has no operator of ONNX", Name(scan.combine)));
    }
    const ElementType element = to.TypeOf(node.operands[0]).element;
    const ElementType work = ReduceType(element);
    const std::string sums =
        to.Emit("CumSum",
                {to.CastTo(to.NameOf(node.operands[0]), element, work),
                 to.Integer(ElementType::kI64, scan.axis)},
                {{"exclusive", int64_t{scan.exclusive}}, {"reverse", int64_t{scan.reverse}}});
    return {to.CastTo(sums, work, element)};
}

Names LowerSort(Lowering& to, const Node& node, const op::Sort& sort) {
    const ElementType element = to.TypeOf(node.operands[0]).element;
    const ElementType work = ReduceType(element);
    const Names both = to.EmitTwo(
        "TopK", {to.CastTo(to.NameOf(node.operands[0]), element, work), to.IntsOf({sort.count})},
        {{"axis", sort.axis}, {"largest", int64_t{sort.descending}}, {"sorted", int64_t{1}}});
    return {to.CastTo(both[0], work, element), both[1]};
}

Names LowerContract(Lowering& to, const Node& node, const op::Contract& contract) {
    const ElementType work = WorkType(contract.accumulate);
    Names operands;
    for (const ValueId operand : node.operands) {
        operands.push_back(to.CastTo(to.NameOf(operand), to.TypeOf(operand).element, work));
    }
    const std::string product =
        to.Emit("Einsum", operands,
                {{"equation", fmt::format("{},{}->{}", contract.a, contract.b, contract.result)}});
    return {to.CastTo(product, work, contract.accumulate)};
}

}  // namespace fornax::graph
