// What the passes that make products narrower share.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"
#include "compiler/graph/passes/cloner.h"

namespace fornax::graph {

// The upper half of the number's bits, rounded to nearest, ties to even; a NaN stays one.
inline uint16_t RoundedToBf16(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    return static_cast<uint16_t>(is_nan ? bits >> 16 | 0x40U
                                        : (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

// Weights are packed into panels of so many columns.
inline constexpr int64_t kPanel = 16;

// A visitor (cloner.h) that copies a graph and puts other nodes in the place of some products.
class ProductRewriter {
  protected:
    ProductRewriter(Cloner& cloner, Graph& to) : cloner_(cloner), to_(to) {}

    // Copies the node, or puts rewrite(product, found, operands) in its place where
    // find(graph, product, operands) finds something. Operands are values of the new graph.
    template <typename Find, typename Rewrite>
    Status VisitProduct(const Node& node, Find find, Rewrite rewrite) {
        const auto* contract = std::get_if<op::Contract>(&node.operation);
        if (contract == nullptr) {
            return cloner_.CopyNode(node);
        }
        const std::vector<ValueId> operands = cloner_.Map(node.operands);
        const auto found = find(to_, *contract, operands);
        if (!found) {
            return cloner_.CopyNode(node);
        }
        name_ = node.name;
        FORNAX_ASSIGN_OR_RETURN(const ValueId result, rewrite(*contract, *found, operands));
        cloner_.Set(node.results[0], result);
        return OkStatus();
    }

    Result<ValueId> Add(Operation operation, std::vector<ValueId> operands) {
        FORNAX_ASSIGN_OR_RETURN(const NodeId id,
                                to_.AddNode(name_, std::move(operation), std::move(operands)));
        return to_[id].results[0];
    }

    // y [rows..., panels, 16] as [rows..., columns].
    Result<ValueId> WithoutPanels(ValueId y, std::vector<Expr> rows, int64_t columns) {
        const int64_t stored = (columns + kPanel - 1) / kPanel * kPanel;
        std::vector<Expr> dims = std::move(rows);
        dims.emplace_back(stored);
        FORNAX_ASSIGN_OR_RETURN(y, Add(op::Reshape{Shape(dims)}, {y}));
        if (stored == columns) {
            return y;
        }
        dims.back() = columns;
        return Add(op::Slice{std::vector<Expr>(dims.size(), Expr(0)),
                             std::vector<int64_t>(dims.size(), 1), Shape(dims)},
                   {y});
    }

    // So many letters that the product does not have.
    static std::string NewLabels(const op::Contract& contract, size_t count) {
        const std::string used = contract.a + contract.b + contract.result;
        std::string labels;
        for (char label = 'a'; labels.size() < count; label = label == 'z' ? 'A' : label + 1) {
            if (used.find(label) == std::string::npos) {
                labels += label;
            }
        }
        return labels;
    }

    Cloner& cloner_;
    Graph& to_;
    std::string name_;  // of the product that is rewritten
};

}  // namespace fornax::graph
