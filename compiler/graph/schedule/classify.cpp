// What each node is to the scheduler.
#include <fmt/format.h>

#include "compiler/graph/schedule/realize.h"
#include "compiler/graph/schedule/recurrence.h"

namespace fornax::graph {
namespace {

// A concatenation of more operands has a kernel for each; of fewer it may be a selection.
constexpr size_t kMaxSelectedOperands = 2;

// The functions that shaders have no 64-bit form of.
bool NeedsNarrowFloat(ScalarFunction function) {
    return IsTranscendental(function) || function == ScalarFunction::kRem ||
           function == ScalarFunction::kMod;
}

struct Classifier {
    const Graph& graph;
    const Node& node;
    const bool serial;

    Classification operator()(const op::Map& map) const {
        const ElementType type = graph.TypeOf(node.operands[0]).element;
        if (!serial && type == ElementType::kF64 && NeedsNarrowFloat(map.function)) {
            return {NodeClass::kHost, fmt::format("shaders have no {} of f64", Name(map.function))};
        }
        return {};
    }
    Classification operator()(const op::Concat&) const {
        if (node.operands.size() > kMaxSelectedOperands) {
            return {NodeClass::kOwnKernel, {}};
        }
        return {};
    }
    Classification operator()(const op::Reduce&) const { return {NodeClass::kReduction, {}}; }
    Classification operator()(const op::ArgReduce&) const { return {NodeClass::kReduction, {}}; }
    Classification operator()(const op::Contract&) const { return {NodeClass::kReduction, {}}; }
    // Those of templates; others have been inlined.
    Classification operator()(const op::Composite&) const { return {NodeClass::kOwnKernel, {}}; }
    Classification operator()(const op::Scan&) const { return {NodeClass::kOwnKernel, {}}; }
    Classification operator()(const op::Sort&) const { return {NodeClass::kOwnKernel, {}}; }
    Classification operator()(const op::Scatter&) const { return {NodeClass::kOwnKernel, {}}; }
    Classification operator()(const op::ReadState&) const { return {NodeClass::kState, {}}; }
    Classification operator()(const op::WriteState&) const { return {NodeClass::kState, {}}; }
    Classification operator()(const op::If&) const {
        return {NodeClass::kHost, "a branch of the condition cannot be computed in advance"};
    }
    Classification operator()(const op::Loop&) const {
        if (IsRecurrence(graph, node)) {
            return {NodeClass::kOwnKernel, {}};
        }
        return {NodeClass::kHost, "the number of iterations is not known in advance"};
    }
    Classification operator()(const op::HostCall& call) const {
        return {NodeClass::kHost, fmt::format("{} is a function of the host", call.name)};
    }
    Classification operator()(const auto&) const { return {}; }
};

}  // namespace

Classification Classify(const Graph& graph, const Node& node, bool serial) {
    for (const std::vector<ValueId>* values : {&node.operands, &node.results}) {
        for (const ValueId value : *values) {
            if (graph.TypeOf(value).element == ElementType::kString) {
                return {NodeClass::kHost, "strings are on the host only"};
            }
        }
    }
    return std::visit(Classifier{graph, node, serial}, node.operation);
}

ValueId StorageOf(const Graph& graph, ValueId value) {
    while (graph.ProducerAs<op::Reshape>(value) != nullptr) {
        value = graph.Producer(value)->operands[0];
    }
    return value;
}

double FunctionCost(ScalarFunction function) {
    if (IsTranscendental(function)) {
        return 10;
    }
    switch (function) {
        case ScalarFunction::kDiv:
        case ScalarFunction::kFloorDiv:
        case ScalarFunction::kRem:
        case ScalarFunction::kMod:
        case ScalarFunction::kSqrt:
        case ScalarFunction::kRsqrt:
        case ScalarFunction::kReciprocal:
            return 4;
        default:
            return 1;
    }
}

}  // namespace fornax::graph
