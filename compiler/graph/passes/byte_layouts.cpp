// Layouts around products of bytes.
//
// Such a product of an image has its channels last, and the operators around it name them second:
// between the two stands a permutation. Elementwise nodes compute the same in both orders, so it
// goes behind them, until it meets the one in front of the next product: memory then holds images
// as the products write and read them. Where something else is in between, the bytes are copied
// into the product's order once, not gathered for each window.
#include <algorithm>
#include <optional>
#include <set>

#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

using Order = std::vector<int64_t>;

bool IsElementwise(const Operation& operation) {
    return Is<op::Map>(operation) || Is<op::Cast>(operation);
}

bool IsView(const Operation& operation) {
    return Is<op::Reshape>(operation) || Is<op::Permute>(operation) ||
           Is<op::Broadcast>(operation) || Is<op::Slice>(operation) || Is<op::Window>(operation) ||
           Is<op::Pad>(operation);
}

bool IsIntegerProduct(const Operation& operation) {
    const auto* contract = std::get_if<op::Contract>(&operation);
    return contract != nullptr && contract->accumulate == ElementType::kI32;
}

Order Inverse(const Order& order) {
    Order inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
        inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
    return inverse;
}

class Sinking {
  public:
    Sinking(Cloner& cloner, Graph& to) : cloner_(cloner), to_(to) {}

    Status Visit(const Node& node) {
        const std::vector<ValueId> operands = cloner_.Map(node.operands);
        if (IsElementwise(node.operation)) {
            if (const op::Permute* permute = CommonPermutation(operands)) {
                return Sink(node, Order(permute->order), operands);
            }
        }
        FORNAX_RETURN_IF_ERROR(cloner_.CopyNode(node));
        const bool follows = (IsElementwise(node.operation) || IsView(node.operation)) &&
                             !Is<op::Permute>(node.operation) &&
                             std::any_of(operands.begin(), operands.end(), [&](ValueId operand) {
                                 return of_product_.contains(operand);
                             });
        if (follows || IsIntegerProduct(node.operation)) {
            of_product_.insert(cloner_.Map(node.results[0]));
        }
        return OkStatus();
    }

  private:
    // The permutation of what comes from a product that one operand is, if the others are the same
    // or have few elements.
    const op::Permute* CommonPermutation(const std::vector<ValueId>& operands) const {
        const op::Permute* common = nullptr;
        for (const ValueId operand : operands) {
            const auto* permute = to_.ProducerAs<op::Permute>(operand);
            if (permute != nullptr && of_product_.contains(to_.Producer(operand)->operands[0])) {
                common = permute;
            }
        }
        for (const ValueId operand : operands) {
            const auto* permute = to_.ProducerAs<op::Permute>(operand);
            const bool same =
                common != nullptr && permute != nullptr && permute->order == common->order;
            if (!same && to_.ProducerAs<op::Broadcast>(operand) == nullptr &&
                to_[operand].kind != ValueKind::kConstant) {
                return nullptr;
            }
        }
        return common;
    }

    Status Sink(const Node& node, const Order& order, std::vector<ValueId> operands) {
        const auto view = [&](const Order& by, ValueId operand) -> Result<ValueId> {
            FORNAX_ASSIGN_OR_RETURN(const NodeId id,
                                    to_.AddNode(node.name, op::Permute{by}, {operand}));
            return to_[id].results[0];
        };
        for (ValueId& operand : operands) {
            const auto* permute = to_.ProducerAs<op::Permute>(operand);
            if (permute != nullptr && permute->order == order) {
                operand = to_.Producer(operand)->operands[0];
            } else {
                FORNAX_ASSIGN_OR_RETURN(operand, view(Inverse(order), operand));
            }
        }
        FORNAX_ASSIGN_OR_RETURN(const NodeId computed,
                                to_.AddNode(node.name, node.operation, std::move(operands)));
        const ValueId inner = to_[computed].results[0];
        of_product_.insert(inner);
        FORNAX_ASSIGN_OR_RETURN(const ValueId result, view(order, inner));
        cloner_.Set(node.results[0], result);
        return OkStatus();
    }

    Cloner& cloner_;
    Graph& to_;
    std::set<ValueId> of_product_;  // of `to`: computed of a product's sums, in their order
};

// Whether the view makes bytes follow each other that do not in memory.
bool ChangesOrder(const Operation& operation) {
    if (const auto* pad = std::get_if<op::Pad>(&operation)) {
        return !(pad->low.back() == Expr(0)) || !(pad->high.back() == Expr(0));
    }
    return Is<op::Permute>(operation);
}

// Bytes in another order than memory has, which products read through further views, such as
// windows.
std::set<ValueId> ReorderedOperands(const Graph& graph) {
    std::set<ValueId> reordered;
    for (const Node& node : graph.nodes()) {
        if (!IsIntegerProduct(node.operation) ||
            graph.TypeOf(node.operands[0]).element != ElementType::kU8) {
            continue;
        }
        ValueId last;  // before the first window
        ValueId value = node.operands[0];
        for (const Node* producer = graph.Producer(value);
             producer != nullptr && IsView(producer->operation); producer = graph.Producer(value)) {
            if (Is<op::Window>(producer->operation)) {
                last = ValueId();
            } else if (!last.valid() && ChangesOrder(producer->operation)) {
                last = value;
            }
            value = producer->operands[0];
        }
        if (last.valid()) {
            reordered.insert(last);
        }
    }
    return reordered;
}

}  // namespace

Result<Graph> SinkPermutations(const Graph& graph) {
    return VisitGraph<Sinking>(graph);
}

Result<Graph> OrderBytes(const Graph& graph) {
    const std::set<ValueId> reordered = ReorderedOperands(graph);
    return RewriteGraph(graph, [&](const Node& node, Cloner& cloner, Graph& to) -> Status {
        FORNAX_RETURN_IF_ERROR(cloner.CopyNode(node));
        if (node.results.size() == 1 && reordered.contains(node.results[0])) {
            // A copy, because it is no view and is read often.
            FORNAX_ASSIGN_OR_RETURN(const NodeId copy,
                                    to.AddNode(node.name, op::Bitcast{ElementType::kU8},
                                               {cloner.Map(node.results[0])}));
            cloner.Set(node.results[0], to[copy].results[0]);
        }
        return OkStatus();
    });
}

}  // namespace fornax::graph
