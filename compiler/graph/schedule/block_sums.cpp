// Recognises sums over blocks by the labels of contractions.
#include "compiler/graph/schedule/block_sums.h"

#include <string>

#include "compiler/graph/loop/few_dots.h"

namespace fornax::graph {
namespace {

bool Has(const std::string& labels, char label) {
    return labels.find(label) != std::string::npos;
}

}  // namespace

std::optional<size_t> OperandOfBlocks(const Graph& graph, const Node& node) {
    const auto* contract = std::get_if<op::Contract>(&node.operation);
    if (contract == nullptr || contract->accumulate != ElementType::kF32 || contract->a.empty() ||
        contract->b.empty() || contract->a.back() != contract->b.back()) {
        return std::nullopt;
    }
    const std::string* const labels[] = {&contract->a, &contract->b};
    int64_t depth = 1, last = 0, rows[2] = {1, 1};
    size_t sums = 0;
    for (size_t side = 0; side < 2; ++side) {
        const Shape& shape = graph.ShapeOf(node.operands[side]);
        for (size_t axis = 0; axis < labels[side]->size(); ++axis) {
            const char label = (*labels[side])[axis];
            const bool in_other = Has(*labels[1 - side], label);
            const int64_t extent = shape[axis].constant().value_or(0);  // 0: may be many
            if (!Has(contract->result, label)) {
                sums += side == 0 ? 1 : 0;
                depth *= side == 0 ? extent : 1;
                last = extent;
            } else if (!in_other) {
                rows[side] *= extent == 0 ? loop::kMostDotRows + 1 : extent;
            }
        }
    }
    if (sums < 2 || last < loop::kLeastDotRun || depth < loop::kLeastDotDepth) {
        return std::nullopt;
    }
    for (size_t side = 0; side < 2; ++side) {
        if (rows[1 - side] <= loop::kMostDotRows && rows[side] > rows[1 - side]) {
            return side;
        }
    }
    return std::nullopt;
}

std::optional<size_t> OperandOfByteBlocks(const Graph& graph, const Node& node) {
    constexpr int64_t kWordBytes = 4;
    const auto* contract = std::get_if<op::Contract>(&node.operation);
    if (contract == nullptr || contract->accumulate != ElementType::kI32 || contract->a.empty() ||
        contract->b.empty() || contract->a.back() != contract->b.back() ||
        contract->result.empty()) {
        return std::nullopt;
    }
    const Shape& of_a = graph.ShapeOf(node.operands[0]);
    const bool is_word =
        of_a[of_a.rank() - 1] == Expr(kWordBytes) && !Has(contract->result, contract->a.back());
    // The sums are of blocks that both operands have.
    bool has_blocks = false;
    for (const char label : contract->result) {
        has_blocks = has_blocks || (Has(contract->a, label) && Has(contract->b, label));
    }
    const char column = contract->result.back();
    if (!is_word || !has_blocks || Has(contract->a, column) == Has(contract->b, column)) {
        return std::nullopt;
    }
    return Has(contract->a, column) ? size_t{0} : size_t{1};
}

std::vector<double> ElementsTogether(const Graph& graph) {
    std::vector<double> together(graph.nodes().size(), 1);
    for (const Node& product : graph.nodes()) {
        const std::optional<size_t> operand = OperandOfBlocks(graph, product);
        if (!operand) {
            continue;
        }
        std::vector<bool> seen(graph.nodes().size());
        std::vector<ValueId> pending = {product.operands[*operand]};
        while (!pending.empty()) {
            const Value& value = graph[pending.back()];
            pending.pop_back();
            if (value.kind != ValueKind::kResult || seen[value.producer.value()]) {
                continue;
            }
            seen[value.producer.value()] = true;
            const Node& node = graph.nodes()[value.producer.value()];
            if (Is<op::Map>(node.operation) || Is<op::Cast>(node.operation) ||
                Is<op::Bitcast>(node.operation)) {
                pending.insert(pending.end(), node.operands.begin(), node.operands.end());
            } else if (Is<op::Broadcast>(node.operation)) {
                const Shape& from = graph.ShapeOf(node.operands[0]);
                const Shape& to = graph.ShapeOf(node.results[0]);
                const std::optional<int64_t> elements = to[to.rank() - 1].constant();
                if (elements && from[from.rank() - 1] == Expr(1)) {
                    together[value.producer.value()] = static_cast<double>(*elements);
                }
            }
        }
    }
    return together;
}

}  // namespace fornax::graph
