// The layout of constant matrices: panels of 16 columns, each column's k after k.
//
// A product takes 16 columns and some ks at a time. In a row-major matrix each k of these lies in
// another row, often in another page; in a panel they follow each other.
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
    WeightPacking(Cloner& cloner, Graph& to) : cloner_(cloner), to_(to) {}

    Status Visit(const Node& node) {
        const auto* contract = std::get_if<op::Contract>(&node.operation);
        if (contract == nullptr || contract->result.empty()) {
            return cloner_.CopyNode(node);
        }
        std::vector<ValueId> operands = cloner_.Map(node.operands);
        const std::string* labels[] = {&contract->a, &contract->b};
        for (size_t i = 0; i < 2; ++i) {
            FORNAX_ASSIGN_OR_RETURN(operands[i],
                                    Packed(node, operands[i], *labels[i], contract->result));
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
                           const std::string& result) {
        const Value& value = to_[id];
        if (value.kind != ValueKind::kConstant || value.type.element != ElementType::kF32 ||
            labels.size() != 2 || value.constant.count() < kLeastElements) {
            return id;
        }
        // Columns are what the result has last; the other dimension is summed over.
        const size_t column_axis = labels[1] == result.back() ? 1 : 0;
        const char depth = labels[1 - column_axis];
        if (labels[column_axis] != result.back() || result.find(depth) != std::string::npos) {
            return id;
        }
        ValueId& view = packed_[{id, column_axis}];
        if (!view.valid()) {
            FORNAX_ASSIGN_OR_RETURN(view, Pack(node.name, value.constant, column_axis));
        }
        return view;
    }

    Result<ValueId> Pack(const std::string& name, const Tensor& matrix, size_t column_axis) {
        const int64_t columns = matrix.dims[column_axis], depth = matrix.dims[1 - column_axis];
        const int64_t panels = (columns + kPanel - 1) / kPanel;
        const int64_t column_stride = column_axis == 1 ? 1 : depth;
        const int64_t depth_stride = column_axis == 1 ? columns : 1;
        uint8_t* data = nullptr;
        Tensor packed = Tensor::Zeros(ElementType::kF32, {panels, depth, kPanel}, &data);
        const uint8_t* from = matrix.data->data();
        for (int64_t column = 0; column < columns; ++column) {
            const int64_t panel = column / kPanel, place = column % kPanel;
            for (int64_t k = 0; k < depth; ++k) {
                std::memcpy(data + 4 * ((panel * depth + k) * kPanel + place),
                            from + 4 * (column * column_stride + k * depth_stride), 4);
            }
        }
        ValueId view = to_.AddConstant(name + ".packed", std::move(packed));
        // Back to the matrix's own indices.
        std::vector<Operation> views = {op::Permute{{1, 0, 2}},
                                        op::Reshape{Shape{depth, panels * kPanel}}};
        if (panels * kPanel != columns) {
            views.emplace_back(op::Slice{{0, 0}, {1, 1}, Shape{depth, columns}});
        }
        if (column_axis == 0) {
            views.emplace_back(op::Permute{{1, 0}});
        }
        for (Operation& operation : views) {
            FORNAX_ASSIGN_OR_RETURN(const NodeId node,
                                    to_.AddNode(name + ".packed", std::move(operation), {view}));
            view = to_[node].results[0];
        }
        return view;
    }

    Cloner& cloner_;
    Graph& to_;
    std::map<std::pair<ValueId, size_t>, ValueId> packed_;
};

}  // namespace

Result<Graph> PackWeights(Graph graph) {
    Graph result(graph.name());
    Cloner cloner(graph, result);
    cloner.CopyInputs();
    WeightPacking packing(cloner, result);
    for (const Node& node : graph.nodes()) {
        FORNAX_RETURN_IF_ERROR(packing.Visit(node));
    }
    cloner.CopyOutputs();
    result.Compact();
    return result;
}

}  // namespace fornax::graph
