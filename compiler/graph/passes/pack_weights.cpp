// The layout of constant matrices: panels of 16 columns, each column's k after k.
//
// A product takes 16 columns and some ks at a time. In a row-major matrix each k of these lies in
// another row, often in another page; in a panel they follow each other.
#include <algorithm>
#include <cstring>
#include <map>

#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

constexpr int64_t kPanel = 16;
// Smaller matrices stay in the first cache as they are.
constexpr int64_t kLeastElements = 4096;

class WeightPacking {
  public:
    WeightPacking(const Graph& graph, Cloner& cloner, Graph& to)
        : graph_(graph), cloner_(cloner), to_(to) {}

    Status Visit(const Node& node) {
        if (Is<op::Loop>(node.operation)) {
            return VisitLoop(node);
        }
        const auto* contract = std::get_if<op::Contract>(&node.operation);
        if (contract == nullptr || contract->result.empty()) {
            return cloner_.CopyNode(node);
        }
        std::vector<ValueId> operands = cloner_.Map(node.operands);
        const std::string* labels[] = {&contract->a, &contract->b};
        for (size_t i = 0; i < 2; ++i) {
            FORNAX_ASSIGN_OR_RETURN(operands[i],
                                    Packed(node, operands[i], *labels[i], contract->result, 2));
        }
        FORNAX_ASSIGN_OR_RETURN(const NodeId copy,
                                to_.AddNode(node.name, node.operation, std::move(operands)));
        cloner_.Set(node.results[0], to_[copy].results[0]);
        return OkStatus();
    }

  private:
    // The operand, or a view of its packed copy.
    Result<ValueId> Packed(const Node& node,
                           ValueId id,
                           const std::string& labels,
                           const std::string& result,
                           size_t max_rank) {
        const Value& value = to_[id];
        if (value.kind != ValueKind::kConstant || value.type.element != ElementType::kF32 ||
            labels.size() < 2 || labels.size() > max_rank ||
            value.constant.count() < kLeastElements) {
            return id;
        }
        // Columns are what the result has last; the other dimension is summed over. A first one of
        // three is that of a batch.
        const size_t last = labels.size() - 1;
        const size_t column_axis = labels[last] == result.back() ? last : last - 1;
        const char depth = labels[last + last - 1 - column_axis];
        if (labels[column_axis] != result.back() || result.find(depth) != std::string::npos ||
            (last == 2 && result.find(labels[0]) == std::string::npos)) {
            return id;
        }
        ValueId& view = packed_[{id, column_axis}];
        if (!view.valid()) {
            FORNAX_ASSIGN_OR_RETURN(view, Pack(node.name, value.constant, column_axis));
        }
        return view;
    }

    // A loop whose body multiplies by a constant that it reads.
    Status VisitLoop(const Node& node) {
        const Graph& body = *node.bodies[0];
        std::vector<ValueId> operands = cloner_.Map(node.operands);
        for (const Node& inner : body.nodes()) {
            const auto* contract = std::get_if<op::Contract>(&inner.operation);
            if (contract == nullptr || contract->result.empty()) {
                continue;
            }
            const std::string* labels[] = {&contract->a, &contract->b};
            for (size_t i = 0; i < 2; ++i) {
                ValueId matrix = inner.operands[i];
                bool divisible = true;
                while (const auto* slice = body.ProducerAs<op::Slice>(matrix)) {
                    divisible = divisible && IsOfPanels(*slice);
                    matrix = body.Producer(matrix)->operands[0];
                }
                // The body's inputs are the loop's operands behind the number of iterations.
                const auto input = std::find(body.inputs().begin(), body.inputs().end(), matrix);
                if (divisible && input != body.inputs().end() && input != body.inputs().begin()) {
                    ValueId& operand =
                        operands[static_cast<size_t>(input - body.inputs().begin()) + 1];
                    FORNAX_ASSIGN_OR_RETURN(operand,
                                            Packed(node, operand, *labels[i], contract->result, 3));
                }
            }
        }
        FORNAX_ASSIGN_OR_RETURN(const NodeId copy, to_.AddNode(node.name, node.operation,
                                                               std::move(operands), node.bodies));
        for (size_t i = 0; i < node.results.size(); ++i) {
            to_.Rename(to_[copy].results[i], graph_[node.results[i]].name);
            cloner_.Set(node.results[i], to_[copy].results[i]);
        }
        return OkStatus();
    }

    // Whether a part of a matrix begins and ends with panels.
    static bool IsOfPanels(const op::Slice& slice) {
        for (size_t i = 0; i < slice.starts.size(); ++i) {
            const int64_t start = slice.starts[i].constant().value_or(1);
            const int64_t size = slice.shape[i].constant().value_or(1);
            if (slice.steps[i] != 1 ||
                (start != 0 && (start % kPanel != 0 || size % kPanel != 0))) {
                return false;
            }
        }
        return true;
    }

    // Of a matrix, or of several in the first dimension.
    Result<ValueId> Pack(const std::string& name, const Tensor& matrices, size_t column_axis) {
        const size_t rank = matrices.dims.size(), first = rank - 2;
        const bool columns_last = column_axis + 1 == rank;
        const int64_t count = rank == 3 ? matrices.dims[0] : 1;
        const int64_t columns = matrices.dims[column_axis];
        const int64_t depth = matrices.dims[columns_last ? first : rank - 1];
        const int64_t panels = (columns + kPanel - 1) / kPanel;
        const int64_t column_stride = columns_last ? 1 : depth;
        const int64_t depth_stride = columns_last ? columns : 1;
        std::vector<int64_t> dims = {panels, depth, kPanel};
        if (rank == 3) {
            dims.insert(dims.begin(), count);
        }
        const std::vector<Expr> shape(matrices.dims.begin(), matrices.dims.end());
        uint8_t* data = nullptr;
        Tensor packed = Tensor::Zeros(ElementType::kF32, dims, &data);
        for (int64_t m = 0; m < count; ++m) {
            const uint8_t* from = matrices.data->data() + 4 * m * columns * depth;
            uint8_t* to = data + 4 * m * panels * depth * kPanel;
            for (int64_t column = 0; column < columns; ++column) {
                const int64_t panel = column / kPanel, place = column % kPanel;
                for (int64_t k = 0; k < depth; ++k) {
                    std::memcpy(to + 4 * ((panel * depth + k) * kPanel + place),
                                from + 4 * (column * column_stride + k * depth_stride), 4);
                }
            }
        }
        ValueId view = to_.AddConstant(name + ".packed", std::move(packed));
        // Back to the matrices' own indices.
        Axes order = columns_last ? Axes{1, 0, 2} : Axes{0, 2, 1};
        std::vector<Expr> whole = {panels * kPanel, panels * kPanel};
        whole[columns_last ? 0 : 1] = depth;
        if (rank == 3) {
            order = columns_last ? Axes{0, 2, 1, 3} : Axes{0, 1, 3, 2};
            whole.insert(whole.begin(), count);
        }
        std::vector<Operation> views = {op::Permute{order}, op::Reshape{Shape(whole)}};
        if (panels * kPanel != columns) {
            views.emplace_back(op::Slice{std::vector<Expr>(rank, Expr(0)),
                                         std::vector<int64_t>(rank, 1), Shape(shape)});
        }
        for (Operation& operation : views) {
            FORNAX_ASSIGN_OR_RETURN(const NodeId node,
                                    to_.AddNode(name + ".packed", std::move(operation), {view}));
            view = to_[node].results[0];
        }
        return view;
    }

    const Graph& graph_;
    Cloner& cloner_;
    Graph& to_;
    std::map<std::pair<ValueId, size_t>, ValueId> packed_;
};

}  // namespace

Result<Graph> PackWeights(Graph graph) {
    Graph result(graph.name());
    Cloner cloner(graph, result);
    cloner.CopyInputs();
    WeightPacking packing(graph, cloner, result);
    for (const Node& node : graph.nodes()) {
        FORNAX_RETURN_IF_ERROR(packing.Visit(node));
    }
    cloner.CopyOutputs();
    result.Compact();
    return result;
}

}  // namespace fornax::graph
