// ToText: the graph as text, deterministic, for people and for tests of exact text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/legacy_graph/graph.h"

namespace fornax::legacy_graph {
namespace {

// Prints one parameter of an operator, leaving out what has its default value.
struct FieldPrinter {
    std::string& out;

    void operator()(std::string_view name, uint32_t value) const {
        fmt::format_to(std::back_inserter(out), " {}={}", name, value);
    }
    void operator()(std::string_view name, BinaryFunction value) const {
        fmt::format_to(std::back_inserter(out), " {}={}", name, Name(value));
    }
    void operator()(std::string_view name, op::ReduceKind value) const {
        fmt::format_to(std::back_inserter(out), " {}={}", name, Name(value));
    }
    void operator()(std::string_view name, const Shape& value) const {
        fmt::format_to(std::back_inserter(out), " {}={}", name, value.ToString());
    }
    void operator()(std::string_view name, const std::vector<uint32_t>& value) const {
        fmt::format_to(std::back_inserter(out), " {}=[{}]", name, fmt::join(value, ","));
    }
    void operator()(std::string_view name, const Activation& value) const {
        if (value.function == UnaryFunction::kIdentity) {
            return;
        }
        fmt::format_to(std::back_inserter(out), " {}={}", name, Name(value.function));
        if (value.a != 0 || value.b != 0) {
            fmt::format_to(std::back_inserter(out), "({},{})", value.a, value.b);
        }
    }
    void operator()(std::string_view, const Window& value) const {
        const Window defaults;
        fmt::format_to(std::back_inserter(out), " kernel={}", fmt::join(value.kernel, "x"));
        if (value.strides != defaults.strides) {
            fmt::format_to(std::back_inserter(out), " strides={}", fmt::join(value.strides, "x"));
        }
        if (value.dilations != defaults.dilations) {
            fmt::format_to(std::back_inserter(out), " dilations={}",
                           fmt::join(value.dilations, "x"));
        }
        if (value.pads != defaults.pads) {
            fmt::format_to(std::back_inserter(out), " pads=[{}]", fmt::join(value.pads, ","));
        }
    }
};

}  // namespace

std::string ToText(const Graph& graph) {
    std::string out;
    // Constants and inputs print where they were added, node results where their node stands.
    for (uint32_t i = 0; i < graph.values().size(); ++i) {
        const Value& value = graph.values()[i];
        fmt::format_to(std::back_inserter(out), "%{} {}: {} = ", i, value.name,
                       value.type.ToString());
        if (value.kind == ValueKind::kInput) {
            out += "input";
        } else if (value.kind == ValueKind::kConstant) {
            out += "constant";
        } else {
            const Node& node = graph[value.producer];
            std::vector<std::string> operands;
            for (ValueId operand : node.operands) {
                operands.push_back(fmt::format("%{}", operand.value()));
            }
            fmt::format_to(std::back_inserter(out), "{}({})", Name(node.operation),
                           fmt::join(operands, ", "));
            std::visit([&](const auto& op) { op.Fields(FieldPrinter{out}); }, node.operation);
        }
        out += '\n';
    }
    std::vector<std::string> outputs;
    for (const Output& output : graph.outputs()) {
        outputs.push_back(fmt::format("{}=%{}", output.name, output.value.value()));
    }
    fmt::format_to(std::back_inserter(out), "return {}\n", fmt::join(outputs, ", "));
    return out;
}

}  // namespace fornax::legacy_graph
