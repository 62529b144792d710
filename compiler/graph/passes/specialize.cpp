// Sizes that are to be constants.
#include <map>

#include <fmt/format.h>

#include "compiler/graph/ir/operation_sizes.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

using Values = std::map<Symbol, Expr>;

Result<Graph> Substitute(const Graph& graph, const Values& values) {
    Graph result(graph.name());
    for (const auto& [symbol, hint] : graph.sizes().hints()) {
        if (!values.contains(symbol)) {
            result.sizes().Declare(symbol.name(), hint, graph.sizes().ranges().at(symbol));
        }
    }
    for (const Guard& guard : graph.sizes().guards()) {
        Guard simple = {guard.relation, guard.a.Substitute(values), guard.b.Substitute(values)};
        if (!(simple.a - simple.b).is_constant()) {
            result.sizes().AddGuard(std::move(simple));
        }
    }
    const auto substitute = [&](Expr& expr) { expr = expr.Substitute(values); };
    const SizeFields substitution(substitute);
    std::vector<ValueId> map(graph.values().size());
    for (const ValueId input : graph.inputs()) {
        TensorType type = graph.TypeOf(input);
        substitution("", type);
        map[input.value()] = result.AddInput(graph[input].name, std::move(type));
    }
    for (size_t v = 0; v < map.size(); ++v) {
        if (graph.values()[v].kind == ValueKind::kConstant) {
            map[v] = result.AddConstant(graph.values()[v].name, graph.values()[v].constant);
        }
    }
    for (const Node& node : graph.nodes()) {
        Operation operation = node.operation;
        std::visit([&](auto& held) { held.Visit(substitution, held); }, operation);
        std::vector<ValueId> operands;
        for (const ValueId operand : node.operands) {
            operands.push_back(map[operand.value()]);
        }
        std::vector<Body> bodies;
        for (const Body& body : node.bodies) {
            FORNAX_ASSIGN_OR_RETURN(Graph specialized, Substitute(*body, values));
            bodies.push_back(std::make_shared<const Graph>(std::move(specialized)));
        }
        Result<NodeId> copy =
            result.AddNode(node.name, std::move(operation), std::move(operands), std::move(bodies));
        if (!copy.ok()) {
            return Error{copy.error().code,
                         fmt::format("The node {}: {}.", node.name, copy.error().message)};
        }
        for (size_t i = 0; i < node.results.size(); ++i) {
            if (graph[node.results[i]].kind == ValueKind::kResult) {
                result.Rename(result[*copy].results[i], graph[node.results[i]].name);
                map[node.results[i].value()] = result[*copy].results[i];
            }
        }
    }
    for (const Output& output : graph.outputs()) {
        result.AddOutput(output.name, map[output.value.value()]);
    }
    return result;
}

}  // namespace

Result<Graph> SpecializeSizes(Graph graph, const std::set<std::string>& dynamic) {
    Values values;
    for (const ValueId input : graph.inputs()) {
        for (const Expr& dim : graph.ShapeOf(input).dims()) {
            for (const Symbol& symbol : dim.Symbols()) {
                if (!dynamic.contains(symbol.name())) {
                    values.emplace(symbol, graph.sizes().hints().at(symbol));
                }
            }
        }
    }
    if (values.empty()) {
        return graph;
    }
    return Substitute(graph, values);
}

}  // namespace fornax::graph
