// Walks over the sizes of a graph, in one order for reading and for replacing them.
#include "compiler/graph/generalize/sizes_of_graph.h"

#include <fmt/format.h>

#include "compiler/graph/ir/operation_key.h"
#include "compiler/graph/ir/operation_sizes.h"

namespace fornax::graph {
namespace {

class Splitter {
  public:
    bool Split(const Graph& graph) {
        if (!graph.sizes().hints().empty()) {
            return false;
        }
        AppendIds(graph.inputs());
        for (const ValueId input : graph.inputs()) {
            hasher_.AppendListSize(graph.ShapeOf(input).rank());
            for (const Expr& dim : graph.ShapeOf(input).dims()) {
                Take(dim);
            }
        }
        hasher_.AppendListSize(graph.values().size());
        for (const Value& value : graph.values()) {
            AppendValue(value);
        }
        hasher_.AppendListSize(graph.nodes().size());
        for (const Node& node : graph.nodes()) {
            AppendNode(node);
        }
        hasher_.AppendListSize(graph.outputs().size());
        for (const Output& output : graph.outputs()) {
            hasher_.Append(output.name).Append(output.value.value());
        }
        return is_constant_;
    }

    FamilyMember Finish() { return {hasher_.Finish(), std::move(sizes_)}; }

  private:
    void Take(const Expr& size) {
        is_constant_ &= size.is_constant();
        sizes_.push_back(size.constant_part());
    }

    void AppendIds(std::span<const ValueId> ids) {
        hasher_.AppendListSize(ids.size());
        for (const ValueId id : ids) {
            hasher_.Append(id.value());
        }
    }

    void AppendValue(const Value& value) {
        hasher_.Append(value.name).Append(value.kind).Append(value.type.element);
        hasher_.Append(value.producer.value()).Append(value.result_index);
        if (value.kind != ValueKind::kConstant) {
            return;
        }
        const Tensor& tensor = value.constant;
        hasher_.AppendArray(std::span<const int64_t>(tensor.dims));
        hasher_.AppendListSize(tensor.strings != nullptr ? tensor.strings->size() : 0);
        if (tensor.strings != nullptr) {
            for (const std::string& text : *tensor.strings) {
                hasher_.Append(text);
            }
        }
        hasher_.AppendBytes(tensor.data ? std::as_bytes(*tensor.data)
                                        : std::span<const std::byte>());
    }

    void AppendNode(const Node& node) {
        Operation operation = node.operation;
        size_t count = 0;
        ForEachSize(operation, [&](Expr& size) {
            Take(size);
            size = 0;
            ++count;
        });
        hasher_.Append(node.name).Append(OperationKey(operation)).AppendListSize(count);
        AppendIds(node.operands);
        AppendIds(node.results);
        hasher_.AppendListSize(node.bodies.size());
        for (const Body& body : node.bodies) {
            hasher_.Append(body->name());
            is_constant_ &= Split(*body);
        }
    }

    Hasher hasher_;
    std::vector<int64_t> sizes_;
    bool is_constant_ = true;
};

class Replacement {
  public:
    Replacement(std::span<const Expr> sizes, const SizeFacts& facts)
        : sizes_(sizes), facts_(facts) {}

    Result<Graph> Replace(const Graph& graph, std::string name) {
        Graph result(std::move(name));
        result.sizes().Merge(facts_);
        std::vector<ValueId> map(graph.values().size());
        for (const ValueId input : graph.inputs()) {
            TensorType type = graph.TypeOf(input);
            for (Expr& dim : type.shape.mutable_dims()) {
                dim = Next();
            }
            map[input.value()] = result.AddInput(graph[input].name, std::move(type));
        }
        for (size_t v = 0; v < map.size(); ++v) {
            if (graph.values()[v].kind == ValueKind::kConstant) {
                map[v] = result.AddConstant(graph.values()[v].name, graph.values()[v].constant);
            }
        }
        for (const Node& node : graph.nodes()) {
            FORNAX_RETURN_IF_ERROR(ReplaceNode(graph, node, result, map));
        }
        for (const Output& output : graph.outputs()) {
            result.AddOutput(output.name, map[output.value.value()]);
        }
        return result;
    }

    bool is_at_end() const { return next_ == sizes_.size(); }

  private:
    Expr Next() { return next_ < sizes_.size() ? sizes_[next_++] : Expr(-1); }

    Status ReplaceNode(const Graph& graph,
                       const Node& node,
                       Graph& result,
                       std::vector<ValueId>& map) {
        Operation operation = node.operation;
        ForEachSize(operation, [&](Expr& size) { size = Next(); });
        std::vector<ValueId> operands;
        for (const ValueId operand : node.operands) {
            operands.push_back(map[operand.value()]);
        }
        std::vector<Body> bodies;
        for (const Body& body : node.bodies) {
            FORNAX_ASSIGN_OR_RETURN(Graph replaced, Replace(*body, body->name()));
            bodies.push_back(std::make_shared<const Graph>(std::move(replaced)));
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
        return OkStatus();
    }

    const std::span<const Expr> sizes_;
    const SizeFacts& facts_;
    size_t next_ = 0;
};

}  // namespace

std::optional<FamilyMember> SplitSizes(const Graph& graph) {
    Splitter splitter;
    if (!splitter.Split(graph)) {
        return std::nullopt;
    }
    return splitter.Finish();
}

Result<Graph> WithSizes(const Graph& graph,
                        std::string name,
                        std::span<const Expr> sizes,
                        const SizeFacts& facts) {
    Replacement replacement(sizes, facts);
    FORNAX_ASSIGN_OR_RETURN(Graph result, replacement.Replace(graph, std::move(name)));
    if (!replacement.is_at_end()) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} sizes are given for the graph {}, more than it has.",
                                 sizes.size(), graph.name())};
    }
    return result;
}

}  // namespace fornax::graph
