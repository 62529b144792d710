// Reads graphs from text; text.h describes the form. Texts may be hostile: depth, sizes and memory
// are bounded, and what AddNode and Verify refuse is refused here.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "compiler/graph/ir/text.h"
#include "compiler/graph/ir/text_reader.h"
#include "compiler/graph/ir/text_values.h"

namespace fornax::graph {
namespace {

// Guards are compared with each other.
constexpr size_t kMaxGuards = 4096;

class GraphReader {
  public:
    explicit GraphReader(std::string_view text) : in_(text) {}

    Result<Graph> Read() {
        FORNAX_ASSIGN_OR_RETURN(Graph graph, ReadGraph(0));
        if (!in_.AtEnd()) {
            return in_.Failure("the graph is complete");
        }
        FORNAX_RETURN_IF_ERROR(Verify(graph));
        return graph;
    }

  private:
    Result<Graph> ReadGraph(int depth);
    Status ReadStatement(Graph& graph, int depth);
    Status ReadSymbol(Graph& graph);
    Status ReadGuard(Graph& graph);
    Status ReadDefinition(Graph& graph, int depth);
    Status ReadNode(Graph& graph, const std::vector<ValueId>& results, int depth);
    Status CheckTypes(Graph& graph, NodeId node, const std::vector<TensorType>& types, size_t line);
    Result<ValueId> ReadId();
    Result<ValueId> ReadValue(const Graph& graph);
    Status CheckInput(const Graph& graph, const TensorType& type, size_t line) const;

    TextReader in_;
    ValueReader values_{in_};
};

Result<ValueId> GraphReader::ReadId() {
    FORNAX_RETURN_IF_ERROR(in_.Expect("%"));
    const size_t line = in_.line();
    FORNAX_ASSIGN_OR_RETURN(const int64_t index, in_.Integer());
    if (index < 0 || index > INT32_MAX) {
        return in_.FailureAt(line, fmt::format("%{} is no value", index));
    }
    return ValueId(static_cast<size_t>(index));
}

// A value that exists.
Result<ValueId> GraphReader::ReadValue(const Graph& graph) {
    const size_t line = in_.line();
    FORNAX_ASSIGN_OR_RETURN(const ValueId id, ReadId());
    if (id.value() >= graph.values().size()) {
        return in_.FailureAt(line, fmt::format("%{} is used, the graph has {} values so far",
                                               id.value(), graph.values().size()));
    }
    return id;
}

Status GraphReader::ReadSymbol(Graph& graph) {
    const size_t line = in_.line();
    std::string name(in_.Identifier());
    if (name.empty()) {
        FORNAX_RETURN_IF_ERROR(values_.Value(name));
    }
    FORNAX_RETURN_IF_ERROR(in_.Expect("="));
    int64_t hint = 0;
    Range range;
    FORNAX_RETURN_IF_ERROR(values_.Value(hint));
    FORNAX_RETURN_IF_ERROR(in_.Expect("in"));
    FORNAX_RETURN_IF_ERROR(values_.Value(range.low));
    FORNAX_RETURN_IF_ERROR(in_.Expect(".."));
    FORNAX_RETURN_IF_ERROR(values_.Value(range.high));
    if (graph.sizes().hints().contains(Symbol(name))) {
        return in_.FailureAt(line, fmt::format("the symbol {} is declared twice", name));
    }
    graph.sizes().Declare(name, hint, range);
    return OkStatus();
}

Status GraphReader::ReadGuard(Graph& graph) {
    Guard guard;
    if (graph.sizes().guards().size() >= kMaxGuards) {
        return in_.Failure(fmt::format("the graph has more than {} guards", kMaxGuards));
    }
    FORNAX_RETURN_IF_ERROR(values_.Value(guard.a));
    if (in_.Accept("==")) {
        guard.relation = Relation::kEqual;
    } else if (in_.Accept("!=")) {
        guard.relation = Relation::kNotEqual;
    } else if (in_.Accept("<=")) {
        guard.relation = Relation::kLessEqual;
    } else if (in_.Accept("<")) {
        guard.relation = Relation::kLess;
    } else {
        return in_.Failure("one of ==, !=, < and <= is expected");
    }
    FORNAX_RETURN_IF_ERROR(values_.Value(guard.b));
    graph.sizes().AddGuard(std::move(guard));
    return OkStatus();
}

// Whether the graph may have an input of this type, as InferTypes checks for results.
Status GraphReader::CheckInput(const Graph& graph, const TensorType& type, size_t line) const {
    uint64_t elements = 1;
    for (const Expr& dim : type.shape.dims()) {
        const int64_t size = graph.sizes().Hint(dim);
        if (size < 0 ||
            __builtin_mul_overflow(elements, static_cast<uint64_t>(std::max<int64_t>(size, 1)),
                                   &elements) ||
            elements > static_cast<uint64_t>(kMaxElements)) {
            return in_.FailureAt(
                line, fmt::format("an input is {}, which has a negative size or more than {} "
                                  "elements",
                                  type.ToString(), kMaxElements));
        }
    }
    return OkStatus();
}

Status GraphReader::CheckTypes(Graph& graph,
                               NodeId node,
                               const std::vector<TensorType>& types,
                               size_t line) {
    const std::vector<ValueId>& results = graph[node].results;
    for (size_t i = 0; i < types.size(); ++i) {
        if (i >= results.size() || graph.TypeOf(results[i]).element != types[i].element ||
            !graph.sizes().Equal(graph.ShapeOf(results[i]), types[i].shape)) {
            return in_.FailureAt(
                line,
                fmt::format("result {} of the node {} is {}, the text says {}", i, graph[node].name,
                            i < results.size() ? graph.TypeOf(results[i]).ToString() : "none",
                            types[i].ToString()));
        }
    }
    return OkStatus();
}

Status GraphReader::ReadNode(Graph& graph, const std::vector<ValueId>& results, int depth) {
    const size_t line = in_.line();
    const std::string_view kind = in_.Identifier();
    std::optional<Operation> operation = ValueReader::OperationByName(kind);
    if (!operation) {
        return in_.FailureAt(line, fmt::format("'{}' is no statement and no operation", kind));
    }
    std::string name;
    FORNAX_RETURN_IF_ERROR(values_.Value(name));
    FORNAX_RETURN_IF_ERROR(in_.Expect("("));
    std::vector<ValueId> operands;
    if (!in_.Accept(")")) {
        do {
            FORNAX_ASSIGN_OR_RETURN(const ValueId operand, ReadValue(graph));
            operands.push_back(operand);
        } while (in_.Accept(","));
        FORNAX_RETURN_IF_ERROR(in_.Expect(")"));
    }
    FORNAX_RETURN_IF_ERROR(values_.Fields(*operation));
    std::vector<TensorType> types;
    if (in_.Accept(":")) {
        do {
            FORNAX_RETURN_IF_ERROR(values_.Value(types.emplace_back()));
        } while (in_.Accept(","));
    }
    std::vector<Body> bodies;
    while (in_.Peek() == "graph") {
        FORNAX_ASSIGN_OR_RETURN(Graph body, ReadGraph(depth + 1));
        bodies.push_back(std::make_shared<const Graph>(std::move(body)));
    }
    const size_t first = graph.values().size();
    Result<NodeId> node =
        graph.AddNode(name, *std::move(operation), std::move(operands), std::move(bodies));
    if (!node.ok()) {
        return in_.FailureAt(
            line, fmt::format("the node {} ({}) is wrong, {}", name, kind, node.error().message));
    }
    if (graph.values().size() != first + results.size()) {
        return in_.FailureAt(
            line, fmt::format("the node {} ({}) has {} results, the text names {}", name, kind,
                              graph.values().size() - first, results.size()));
    }
    return CheckTypes(graph, *node, types, line);
}

// "%4 = constant ..." or "%4, %5 = sort ...".
Status GraphReader::ReadDefinition(Graph& graph, int depth) {
    std::vector<ValueId> results;
    do {
        const size_t line = in_.line();
        FORNAX_ASSIGN_OR_RETURN(const ValueId id, ReadId());
        if (id.value() != graph.values().size() + results.size()) {
            return in_.FailureAt(line,
                                 fmt::format("%{} is defined, the next value is %{}", id.value(),
                                             graph.values().size() + results.size()));
        }
        results.push_back(id);
    } while (in_.Accept(","));
    FORNAX_RETURN_IF_ERROR(in_.Expect("="));
    const bool is_input = in_.Peek() == "input";
    if (results.size() > 1 || (!is_input && in_.Peek() != "constant")) {
        return ReadNode(graph, results, depth);
    }
    in_.Identifier();
    std::string name;
    FORNAX_RETURN_IF_ERROR(values_.Value(name));
    const size_t line = in_.line();
    if (is_input) {
        TensorType type;
        FORNAX_RETURN_IF_ERROR(values_.Value(type));
        FORNAX_RETURN_IF_ERROR(CheckInput(graph, type, line));
        graph.AddInput(std::move(name), std::move(type));
        return OkStatus();
    }
    FORNAX_ASSIGN_OR_RETURN(Tensor tensor, values_.Constant());
    graph.AddConstant(std::move(name), std::move(tensor));
    return OkStatus();
}

Status GraphReader::ReadStatement(Graph& graph, int depth) {
    const std::string_view word = in_.Peek();
    if (word.empty()) {
        return ReadDefinition(graph, depth);
    }
    const size_t line = in_.line();
    if (word != "symbol" && word != "guard" && word != "name" && word != "fold" &&
        word != "output") {
        return ReadNode(graph, {}, depth);
    }
    in_.Identifier();
    std::string name;
    if (word == "symbol") {
        return ReadSymbol(graph);
    }
    if (word == "guard") {
        return ReadGuard(graph);
    }
    if (word == "output") {
        FORNAX_RETURN_IF_ERROR(values_.Value(name));
        FORNAX_ASSIGN_OR_RETURN(const ValueId id, ReadValue(graph));
        graph.AddOutput(std::move(name), id);
        return OkStatus();
    }
    FORNAX_ASSIGN_OR_RETURN(const ValueId id, ReadValue(graph));
    if (word == "name") {
        FORNAX_RETURN_IF_ERROR(values_.Value(name));
        graph.Rename(id, std::move(name));
        return OkStatus();
    }
    FORNAX_ASSIGN_OR_RETURN(Tensor tensor, values_.Constant());
    if (graph[id].kind != ValueKind::kResult || graph.TypeOf(id) != tensor.type()) {
        return in_.FailureAt(line,
                             fmt::format("%{} is {} and cannot be folded to {}", id.value(),
                                         graph.TypeOf(id).ToString(), tensor.type().ToString()));
    }
    graph.MakeConstant(id, std::move(tensor));
    return OkStatus();
}

Result<Graph> GraphReader::ReadGraph(int depth) {
    if (depth > kMaxTextDepth) {
        return in_.Failure(fmt::format("a body is nested in more than {} others", kMaxTextDepth));
    }
    FORNAX_RETURN_IF_ERROR(in_.Expect("graph"));
    FORNAX_ASSIGN_OR_RETURN(std::string name, in_.String());
    FORNAX_RETURN_IF_ERROR(in_.Expect("{"));
    Graph graph(std::move(name));
    while (!in_.Accept("}")) {
        FORNAX_RETURN_IF_ERROR(ReadStatement(graph, depth));
    }
    return graph;
}

}  // namespace

Result<Graph> ParseGraph(std::string_view text) {
    return GraphReader(text).Read();
}

}  // namespace fornax::graph
