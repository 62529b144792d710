// Products of one value with several constant matrices are one product with all their columns: the
// query, key and value of an attention. Readers see slices of it.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

// A product with a constant matrix, and the addition of a row of constants that follows it.
struct Candidate {
    NodeId contract;
    NodeId addition;         // not valid: there is none
    ValueId bias;            // the constant, of as many elements as the matrix has columns
    size_t column_axis = 0;  // of the matrix
    size_t result_axis = 0;  // where the columns are in the result
    int64_t columns = 0;
};

class ProductJoining {
  public:
    explicit ProductJoining(const Graph& graph) : graph_(graph), users_(graph.values().size()) {
        for (size_t n = 0; n < graph.nodes().size(); ++n) {
            for (const ValueId operand : graph.nodes()[n].operands) {
                users_[operand.value()].push_back(NodeId(n));
            }
        }
        std::map<std::pair<ValueId, std::string>, std::vector<Candidate>> groups;
        for (size_t n = 0; n < graph.nodes().size(); ++n) {
            if (const std::optional<Candidate> candidate = Find(NodeId(n))) {
                const auto& contract = std::get<op::Contract>(graph.nodes()[n].operation);
                const ElementType element = graph.TypeOf(graph.nodes()[n].operands[1]).element;
                const std::string kind = contract.a + "," + contract.b + "," + contract.result +
                                         "," + std::string(Name(contract.accumulate)) + "," +
                                         std::string(Name(element));
                groups[{graph.nodes()[n].operands[0], kind}].push_back(*candidate);
            }
        }
        for (auto& [key, group] : groups) {
            if (group.size() < 2) {
                continue;
            }
            for (const Candidate& candidate : group) {
                replaced_.insert(candidate.contract);
                if (candidate.addition.valid()) {
                    replaced_.insert(candidate.addition);
                }
            }
            const NodeId first = group[0].contract;
            joined_.emplace(first, std::move(group));
        }
    }

    Status Visit(NodeId id, Cloner& cloner, Graph& to) const {
        const auto group = joined_.find(id);
        if (group != joined_.end()) {
            return Join(group->second, cloner, to);
        }
        return replaced_.contains(id) ? OkStatus() : cloner.CopyNode(graph_[id]);
    }

  private:
    const std::vector<NodeId>& UsersOf(ValueId value) const { return users_[value.value()]; }
    bool IsOutput(ValueId value) const {
        return std::any_of(graph_.outputs().begin(), graph_.outputs().end(),
                           [&](const Output& output) { return output.value == value; });
    }

    std::optional<Candidate> Find(NodeId id) const {
        const Node& node = graph_[id];
        const auto* contract = std::get_if<op::Contract>(&node.operation);
        if (contract == nullptr || contract->b.size() != 2 ||
            graph_[node.operands[1]].kind != ValueKind::kConstant ||
            graph_[node.operands[0]].kind == ValueKind::kConstant ||
            !IsFloat(graph_.TypeOf(node.operands[1]).element) || IsOutput(node.results[0])) {
            return std::nullopt;
        }
        Candidate candidate;
        candidate.contract = id;
        candidate.column_axis = contract->result.find(contract->b[1]) != std::string::npos ? 1 : 0;
        const char column = contract->b[candidate.column_axis];
        const char depth = contract->b[1 - candidate.column_axis];
        candidate.result_axis = contract->result.find(column);
        if (candidate.result_axis == std::string::npos ||
            contract->a.find(column) != std::string::npos ||
            contract->result.find(depth) != std::string::npos) {
            return std::nullopt;
        }
        candidate.columns = graph_[node.operands[1]].constant.dims[candidate.column_axis];
        ValueId last = node.results[0];
        if (const std::vector<NodeId>& users = UsersOf(last); users.size() == 1) {
            candidate.bias = BiasOf(graph_[users[0]], last, candidate);
            if (candidate.bias.valid()) {
                candidate.addition = users[0];
                last = graph_[users[0]].results[0];
            }
        }
        return IsKept(last) ? std::optional(candidate) : std::nullopt;
    }

    // The constant that `node` adds to each row of `product`, if it does.
    ValueId BiasOf(const Node& node, ValueId product, const Candidate& candidate) const {
        const auto* map = std::get_if<op::Map>(&node.operation);
        if (map == nullptr || map->function != ScalarFunction::kAdd ||
            node.operands[0] == node.operands[1]) {
            return {};
        }
        ValueId value = node.operands[node.operands[0] == product ? 1 : 0];
        if (graph_.ProducerAs<op::Broadcast>(value) != nullptr) {
            value = graph_.Producer(value)->operands[0];
        }
        const Shape& shape = graph_.ShapeOf(value);
        if (shape.Volume() != Expr(candidate.columns) ||
            shape[candidate.result_axis] != Expr(candidate.columns)) {
            return {};
        }
        while (graph_.ProducerAs<op::Reshape>(value) != nullptr) {
            value = graph_.Producer(value)->operands[0];
        }
        return graph_[value].kind == ValueKind::kConstant ? value : ValueId();
    }

    static bool IsView(const Operation& operation) {
        return Is<op::Reshape>(operation) || Is<op::Permute>(operation) || Is<op::Slice>(operation);
    }

    // Whether an output is the value in some order: the product then writes it there.
    bool LeadsToOutput(ValueId value) const {
        const std::vector<NodeId>& users = UsersOf(value);
        return IsOutput(value) || std::any_of(users.begin(), users.end(), [&](NodeId user) {
                   return IsView(graph_[user].operation) && LeadsToOutput(graph_[user].results[0]);
               });
    }

    // Whether a value is likely to be in memory: a product reads it, or it is read in another
    // order. What only elementwise operations read is better the product's epilogue.
    bool IsKept(ValueId value) const {
        const std::vector<NodeId>& users = UsersOf(value);
        return !LeadsToOutput(value) && std::any_of(users.begin(), users.end(), [&](NodeId user) {
            return Is<op::Contract>(graph_[user].operation) || IsView(graph_[user].operation);
        });
    }

    static Result<ValueId> Add(Graph& to,
                               const std::string& name,
                               Operation operation,
                               std::vector<ValueId> operands) {
        FORNAX_ASSIGN_OR_RETURN(const NodeId node,
                                to.AddNode(name, std::move(operation), std::move(operands)));
        return to[node].results[0];
    }

    // The matrices side by side.
    Tensor JoinMatrices(const std::vector<Candidate>& group, int64_t columns) const {
        const size_t axis = group[0].column_axis;
        const Tensor& first = graph_[graph_[group[0].contract].operands[1]].constant;
        std::vector<int64_t> dims = first.dims;
        dims[axis] = columns;
        uint8_t* data = nullptr;
        Tensor joined = Tensor::Zeros(first.element, dims, &data);
        const size_t width = BytesOf(first.element);
        const int64_t rows = axis == 0 ? 1 : dims[0];
        for (int64_t row = 0; row < rows; ++row) {
            for (const Candidate& candidate : group) {
                const Tensor& matrix = graph_[graph_[candidate.contract].operands[1]].constant;
                const size_t bytes = static_cast<size_t>(matrix.count() / rows) * width;
                std::memcpy(data, matrix.data->data() + static_cast<size_t>(row) * bytes, bytes);
                data += bytes;
            }
        }
        return joined;
    }

    Tensor JoinBiases(const std::vector<Candidate>& group, std::vector<int64_t> dims) const {
        uint8_t* data = nullptr;
        const auto& contract = std::get<op::Contract>(graph_[group[0].contract].operation);
        Tensor joined = Tensor::Zeros(contract.accumulate, std::move(dims), &data);
        for (const Candidate& candidate : group) {
            const size_t bytes =
                static_cast<size_t>(candidate.columns) * BytesOf(contract.accumulate);
            if (candidate.bias.valid()) {
                std::memcpy(data, graph_[candidate.bias].constant.data->data(), bytes);
            }
            data += bytes;
        }
        return joined;
    }

    Status Join(const std::vector<Candidate>& group, Cloner& cloner, Graph& to) const {
        int64_t columns = 0;
        bool any_bias = false;
        for (const Candidate& candidate : group) {
            columns += candidate.columns;
            any_bias = any_bias || candidate.bias.valid();
        }
        const Node& first = graph_[group[0].contract];
        const size_t axis = group[0].result_axis;
        const ValueId matrix = to.AddConstant(first.name + ".joined", JoinMatrices(group, columns));
        FORNAX_ASSIGN_OR_RETURN(ValueId joined, Add(to, first.name, first.operation,
                                                    {cloner.Map(first.operands[0]), matrix}));
        const Shape shape = to.ShapeOf(joined);
        if (any_bias) {
            std::vector<int64_t> dims(shape.rank(), 1);
            dims[axis] = columns;
            const ValueId bias =
                to.AddConstant(first.name + ".bias", JoinBiases(group, std::move(dims)));
            FORNAX_ASSIGN_OR_RETURN(const ValueId row,
                                    Add(to, first.name, op::Broadcast{shape}, {bias}));
            FORNAX_ASSIGN_OR_RETURN(
                joined, Add(to, first.name, op::Map{ScalarFunction::kAdd}, {joined, row}));
        }
        int64_t begin = 0;
        for (const Candidate& candidate : group) {
            std::vector<Expr> starts(shape.rank(), Expr(0));
            starts[axis] = begin;
            std::vector<Expr> dims(shape.dims().begin(), shape.dims().end());
            dims[axis] = candidate.columns;
            const Node& last =
                graph_[candidate.addition.valid() ? candidate.addition : candidate.contract];
            FORNAX_ASSIGN_OR_RETURN(
                const ValueId slice,
                Add(to, last.name,
                    op::Slice{std::move(starts), std::vector<int64_t>(shape.rank(), 1),
                              Shape(std::move(dims))},
                    {joined}));
            cloner.Set(last.results[0], slice);
            begin += candidate.columns;
        }
        return OkStatus();
    }

    const Graph& graph_;
    std::vector<std::vector<NodeId>> users_;           // by value index
    std::map<NodeId, std::vector<Candidate>> joined_;  // by the first product
    std::set<NodeId> replaced_;
};

}  // namespace

Result<Graph> JoinProducts(const Graph& graph) {
    Graph result(graph.name());
    Cloner cloner(graph, result);
    cloner.CopyInputs();
    const ProductJoining joining(graph);
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
        FORNAX_RETURN_IF_ERROR(joining.Visit(NodeId(n), cloner, result));
    }
    cloner.CopyOutputs();
    result.Compact();
    return result;
}

}  // namespace fornax::graph
