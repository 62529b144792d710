// Tensors out of numbers, copies and conversions.
#include <fmt/format.h>

#include "compiler/frontends/torch/import_quantised.h"
#include "compiler/frontends/torch/operator_families.h"
#include "compiler/graph/build/activations.h"

namespace fornax::torch_frontend {
namespace {

void ImportFull(Node& node) {
    const TensorType type = node.ResultType();
    node.Out(graph::BroadcastTo(node.As("fill_value", type.element), type.shape));
}

void ImportFill(Node& node) {
    const TensorType type = node.ResultType();
    node.Out(graph::BroadcastTo(node.As("value", type.element), type.shape));
}

void ImportScalarTensor(Node& node) {
    node.Out(node.As("s", node.ResultType().element));
}

// What is not written to holds anything: zeros.
template <int value>
void ImportConstant(Node& node) {
    const TensorType type = node.ResultType();
    node.Out(node.builder().Full(type.element, type.shape, value));
}

void ImportArange(Node& node) {
    const TensorType type = node.ResultType();
    Builder& b = node.builder();
    const auto given = [&](std::string_view name, int64_t otherwise) {
        Operand operand;
        operand.integer = otherwise;
        return node.Has(name) ? node.Number(name) : operand;
    };
    const Operand start = given("start", 0), step = given("step", 1);
    if (!start.is_float && !step.is_float && !start.tensor && !step.tensor && step.integer == 1 &&
        start.integer == 0) {
        return node.Out(b.Iota(type.element, type.shape, 0));
    }
    const bool floats = start.is_float || step.is_float ||
                        (graph::IsFloat(type.element) && (start.tensor || step.tensor));
    const ElementType used = floats ? graph::ComputeType(type.element) : ElementType::kI64;
    node.Out(b.Iota(used, type.shape, 0) * ToTensor(b, step, used) + ToTensor(b, start, used));
}

// A copy is the value itself: values never change.
void ImportAlias(Node& node) {
    node.Out(node.In("self"));
}

void ImportCopy(Node& node) {
    node.Out(graph::BroadcastTo(node.In("src"), node.ResultType().shape));
}

// Conversions of floats to integers: torch's are C's, the same as ours in range.
void ImportToCopy(Node& node) {
    node.Out(FloatsOfCodes(node.In("self"), node.ResultType().element));
}

// The same bits as another type of the same width.
void ImportBitcast(Node& node) {
    const Val x = node.In("self");
    const ElementType to = node.ResultType().element;
    if (graph::BitsOf(to) != graph::BitsOf(x.element()) || to == ElementType::kBool ||
        x.element() == ElementType::kBool) {
        FailUnsupported(fmt::format("it views {} as {}, of another width", graph::Name(x.element()),
                                    graph::Name(to)));
    }
    node.Out(graph::Bitcast(x, to));
}

void ImportConvert(Node& node) {
    node.Out(FloatsOfCodes(node.In(node.Has("self") ? "self" : "a"), node.ResultType().element));
}

constexpr OperatorEntry kOperators[] = {
    {"_to_copy.default", ImportToCopy},
    {"alias.default", ImportAlias},
    {"alias_copy.default", ImportAlias},
    {"arange.default", ImportArange},
    {"arange.start", ImportArange},
    {"arange.start_step", ImportArange},
    {"clone.default", ImportAlias},
    {"contiguous.default", ImportAlias},
    {"copy.default", ImportCopy},
    {"detach.default", ImportAlias},
    {"detach_copy.default", ImportAlias},
    {"empty.memory_format", ImportConstant<0>},
    {"empty_like.default", ImportConstant<0>},
    {"empty_permuted.default", ImportConstant<0>},
    {"empty_strided.default", ImportConstant<0>},
    {"fill.Scalar", ImportFill},
    {"fill.Tensor", ImportFill},
    {"full.default", ImportFull},
    {"full_like.default", ImportFull},
    {"lift_fresh_copy.default", ImportAlias},
    {"new_empty.default", ImportConstant<0>},
    {"new_empty_strided.default", ImportConstant<0>},
    {"new_full.default", ImportFull},
    {"new_ones.default", ImportConstant<1>},
    {"new_zeros.default", ImportConstant<0>},
    {"ones.default", ImportConstant<1>},
    {"ones_like.default", ImportConstant<1>},
    {"prims.convert_element_type.default", ImportConvert},
    {"scalar_tensor.default", ImportScalarTensor},
    {"to.dtype", ImportConvert},
    {"view.dtype", ImportBitcast},
    {"zeros.default", ImportConstant<0>},
    {"zeros_like.default", ImportConstant<0>},
};

}  // namespace

std::span<const OperatorEntry> SourceOperators() {
    return kOperators;
}

}  // namespace fornax::torch_frontend
