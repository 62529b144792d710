#include "compiler/graph/schedule/readers.h"

#include <algorithm>
#include <utility>

#include "compiler/graph/loop/block_product.h"
#include "compiler/graph/schedule/block_sums.h"
#include "compiler/graph/schedule/own_kernels.h"

namespace fornax::graph {

bool IsView(const Operation& operation) {
    return Is<op::Reshape>(operation) || Is<op::Permute>(operation) ||
           Is<op::Broadcast>(operation) || Is<op::Slice>(operation) || Is<op::Window>(operation) ||
           Is<op::Pad>(operation);
}

double ReadsOfOperand(const Graph& graph, const Node& node, NodeClass node_class, size_t operand) {
    const auto volume_of = [&](ValueId value) {
        const int64_t volume = graph.sizes().Hint(graph.ShapeOf(value).Volume());
        return std::max<double>(1, static_cast<double>(volume));
    };
    const ValueId value = node.operands[operand];
    if (const auto* contract = std::get_if<op::Contract>(&node.operation)) {
        double volume = volume_of(node.results[0]);
        std::set<char> labels(contract->result.begin(), contract->result.end());
        for (size_t side = 0; side < 2; ++side) {
            const std::string& own = side == 0 ? contract->a : contract->b;
            const Shape& shape = graph.ShapeOf(node.operands[side]);
            for (size_t axis = 0; axis < own.size(); ++axis) {
                if (labels.insert(own[axis]).second) {
                    volume *=
                        std::max<double>(1, static_cast<double>(graph.sizes().Hint(shape[axis])));
                }
            }
        }
        if (OperandOfBlocks(graph, node) == operand) {
            return 1;
        }
        const double reads = volume / volume_of(value);
        return OperandOfByteBlocks(graph, node) == operand
                   ? std::max(1.0, reads / static_cast<double>(loop::kRowsOfBlocks))
                   : reads;
    }
    if (const auto* sort = std::get_if<op::Sort>(&node.operation)) {
        const Expr& length = graph.ShapeOf(value)[static_cast<size_t>(sort->axis)];
        return IsSortedByComparing(graph.sizes(), length)
                   ? static_cast<double>(graph.sizes().Hint(length))
                   : 2;
    }
    if (node_class == NodeClass::kInline && !node.results.empty()) {
        return std::max(1.0, volume_of(node.results[0]) / volume_of(value));
    }
    return 1;
}

Readers::Readers(const Graph& graph, const std::vector<bool>& realized)
    : graph_(graph), realized_(realized), users_(graph.values().size()) {
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
        for (const ValueId operand : graph.nodes()[n].operands) {
            users_[operand.value()].push_back(n);
        }
    }
}

std::vector<Readers::Reader> Readers::Of(ValueId value) const {
    std::vector<Reader> readers;
    std::set<std::pair<size_t, ValueId>> known;
    const auto add = [&](size_t node, ValueId result) {
        if (known.emplace(node, result).second) {
            readers.push_back({node, result});
        }
    };
    std::set<ValueId> seen;
    std::vector<ValueId> pending = {value};
    while (!pending.empty()) {
        const ValueId current = pending.back();
        pending.pop_back();
        if (!seen.insert(current).second) {
            continue;
        }
        for (const size_t n : UsersOf(current)) {
            const std::vector<ValueId>& results = graph_.nodes()[n].results;
            if (results.empty()) {
                add(n, ValueId());
            }
            for (const ValueId result : results) {
                if (realized_[result.value()]) {
                    add(n, result);
                } else {
                    pending.push_back(result);
                }
            }
        }
    }
    return readers;
}

std::vector<ValueId> Readers::ResultsOf(ValueId value) const {
    std::set<ValueId> results;
    for (const Reader& reader : Of(value)) {
        results.insert(reader.result);
    }
    return {results.begin(), results.end()};
}

std::set<ValueId> Readers::BuffersOf(std::span<const ValueId> operands) const {
    std::set<ValueId> buffers, seen;
    std::vector<ValueId> pending(operands.begin(), operands.end());
    while (!pending.empty()) {
        const ValueId value = pending.back();
        pending.pop_back();
        if (!seen.insert(value).second) {
            continue;
        }
        const Node* producer = graph_.Producer(value);
        if (realized_[value.value()] || producer == nullptr) {
            buffers.insert(value);
        } else {
            pending.insert(pending.end(), producer->operands.begin(), producer->operands.end());
        }
    }
    return buffers;
}

bool Readers::OnlyConcatenate(ValueId value) const {
    const std::span<const size_t> users = UsersOf(value);
    return !users.empty() && std::all_of(users.begin(), users.end(), [&](size_t user) {
        const Node& node = graph_.nodes()[user];
        return Is<op::Concat>(node.operation) ||
               (IsView(node.operation) && !realized_[node.results[0].value()] &&
                OnlyConcatenate(node.results[0]));
    });
}

}  // namespace fornax::graph
