// Constant folding, common subexpressions, and nodes that change nothing.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "compiler/graph/interpret/interpreter.h"
#include "compiler/graph/ir/operation_key.h"
#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

// What is folded on the host; larger results are computed by the device.
constexpr int64_t kMaxFoldedElements = int64_t{1} << 22;
// A result with many more elements than its operands is better computed where it is needed.
constexpr int64_t kMaxFoldedGrowth = 4;
// Repeating more elements is a view that costs nothing, and their copies would be in memory.
constexpr int64_t kMaxRepeated = 4096;

class Simplifier {
  public:
    Simplifier(const Graph& from, Cloner& cloner, Graph& to) : cloner_(cloner), to_(to) {
        for (const Output& output : from.outputs()) {
            outputs_.insert(output.value);
        }
    }

    Status Visit(const Node& node) {
        std::vector<ValueId> operands = cloner_.Map(node.operands);
        for (ValueId& operand : operands) {
            operand = SameConstant(operand);
        }
        if (node.bodies.empty() && node.results.size() == 1) {
            if (const ValueId same = Unchanged(node.operation, operands); same.valid()) {
                cloner_.Set(node.results[0], same);
                return OkStatus();
            }
        }
        if (!node.bodies.empty() || HasEffect(node.operation)) {
            return cloner_.CopyNode(node);
        }
        Operation operation = node.operation;
        std::vector<ValueId> simple = operands;
        ComposeViews(operation, simple);
        FORNAX_RETURN_IF_ERROR(MultiplyByReciprocal(node, operation, simple));
        ComposeInverses(operation, simple);
        if (node.results.size() == 1) {
            if (const ValueId same = Unchanged(operation, simple); same.valid()) {
                cloner_.Set(node.results[0], same);
                return OkStatus();
            }
        }
        std::string key = OperationKey(operation);
        for (const ValueId operand : simple) {
            key += fmt::format("%{}", operand.value());
        }
        const auto found = known_.find(key);
        if (found != known_.end()) {
            SetResults(node, found->second);
            return OkStatus();
        }
        FORNAX_ASSIGN_OR_RETURN(const NodeId copy,
                                to_.AddNode(node.name, std::move(operation), std::move(simple)));
        std::vector<ValueId> results = to_[copy].results;
        FORNAX_RETURN_IF_ERROR(Fold(copy, results));
        SetResults(node, results);
        known_.emplace(std::move(key), std::move(results));
        return OkStatus();
    }

  private:
    // The first constant with the same few elements, so that nodes with equal ones are one.
    ValueId SameConstant(ValueId value) {
        constexpr int64_t kMostBytes = 4096;
        const Value& constant = to_[value];
        if (constant.kind != ValueKind::kConstant ||
            constant.type.element == ElementType::kString ||
            constant.constant.count() * BytesOf(constant.type.element) > kMostBytes) {
            return value;
        }
        const int64_t bytes = constant.constant.count() * BytesOf(constant.type.element);
        std::string key = fmt::format("{} {} ", Name(constant.type.element),
                                      fmt::join(constant.constant.dims, ","));
        key.append(reinterpret_cast<const char*>(constant.constant.data->data()),
                   static_cast<size_t>(bytes));
        return constants_.emplace(std::move(key), value).first->second;
    }

    static bool HasEffect(const Operation& operation) {
        return Is<op::HostCall>(operation) || Is<op::ReadState>(operation) ||
               Is<op::WriteState>(operation);
    }

    void SetResults(const Node& node, const std::vector<ValueId>& results) {
        for (size_t i = 0; i < node.results.size(); ++i) {
            cloner_.Set(node.results[i], results[i]);
            if (outputs_.contains(node.results[i])) {
                kept_.insert(results[i]);
            }
        }
    }

    // The operand that the node's only result always equals, if there is one.
    ValueId Unchanged(const Operation& operation, const std::vector<ValueId>& operands) const {
        const auto is_zero = [](const Expr& expr) { return expr == Expr(0); };
        const bool unchanged = std::visit(
            [&](const auto& held) {
                using T = std::decay_t<decltype(held)>;
                if constexpr (std::is_same_v<T, op::Reshape> || std::is_same_v<T, op::Broadcast>) {
                    return held.shape == to_.ShapeOf(operands[0]);
                } else if constexpr (std::is_same_v<T, op::Permute>) {
                    return std::is_sorted(held.order.begin(), held.order.end());
                } else if constexpr (std::is_same_v<T, op::Cast> ||
                                     std::is_same_v<T, op::Bitcast>) {
                    return held.to == to_.TypeOf(operands[0]).element;
                } else if constexpr (std::is_same_v<T, op::Slice>) {
                    return held.shape == to_.ShapeOf(operands[0]) &&
                           std::all_of(held.starts.begin(), held.starts.end(), is_zero) &&
                           std::all_of(held.steps.begin(), held.steps.end(),
                                       [](int64_t step) { return step == 1; });
                } else if constexpr (std::is_same_v<T, op::Pad>) {
                    return std::all_of(held.low.begin(), held.low.end(), is_zero) &&
                           std::all_of(held.high.begin(), held.high.end(), is_zero) &&
                           std::all_of(held.interior.begin(), held.interior.end(),
                                       [](int64_t interior) { return interior == 0; });
                } else if constexpr (std::is_same_v<T, op::Reduce>) {
                    return held.axes.empty();
                } else {
                    return std::is_same_v<T, op::Concat> && operands.size() == 1;
                }
            },
            operation);
        return unchanged ? operands[0] : ValueId();
    }

    // What an operation that follows undoes: two bitcasts become one, two exclusive ors with one
    // number none (a bitcast to the same type). So bytes that are stored with another offset for
    // their products keep it between operators.
    void ComposeInverses(Operation& operation, std::vector<ValueId>& operands) const {
        if (Is<op::Bitcast>(operation)) {
            while (to_.ProducerAs<op::Bitcast>(operands[0]) != nullptr) {
                operands[0] = to_.Producer(operands[0])->operands[0];
            }
            return;
        }
        const auto is_xor = [](const Operation* other) {
            const auto* map = other == nullptr ? nullptr : std::get_if<op::Map>(other);
            return map != nullptr && map->function == ScalarFunction::kXor;
        };
        const Node* before = operands.empty() ? nullptr : to_.Producer(operands[0]);
        if (!is_xor(&operation) || before == nullptr || !is_xor(&before->operation)) {
            return;
        }
        const std::optional<int64_t> first = SpreadInteger(before->operands[1]);
        if (first && first == SpreadInteger(operands[1])) {
            operation = op::Bitcast{to_.TypeOf(operands[0]).element};
            operands = {before->operands[0]};
        }
    }

    // The one integer that all elements of a constant are, if it is spread by views.
    std::optional<int64_t> SpreadInteger(ValueId value) const {
        while (to_.ProducerAs<op::Broadcast>(value) != nullptr ||
               to_.ProducerAs<op::Reshape>(value) != nullptr) {
            value = to_.Producer(value)->operands[0];
        }
        const Value& constant = to_[value];
        if (constant.kind != ValueKind::kConstant || constant.type.shape.Volume() != Expr(1) ||
            !IsInteger(constant.type.element)) {
            return std::nullopt;
        }
        return constant.constant.At(0).integer;
    }

    // A view of a view of the same kind is one view. An output is in memory anyway: what sees it in
    // another order reads it there.
    void ComposeViews(Operation& operation, std::vector<ValueId>& operands) const {
        if (Is<op::Reshape>(operation)) {
            while (to_.ProducerAs<op::Reshape>(operands[0]) != nullptr) {
                operands[0] = to_.Producer(operands[0])->operands[0];
            }
        } else if (auto* permute = std::get_if<op::Permute>(&operation)) {
            while (const auto* inner = kept_.contains(operands[0])
                                           ? nullptr
                                           : to_.ProducerAs<op::Permute>(operands[0])) {
                for (int64_t& axis : permute->order) {
                    axis = inner->order[static_cast<size_t>(axis)];
                }
                operands[0] = to_.Producer(operands[0])->operands[0];
            }
        } else if (Is<op::Broadcast>(operation)) {
            while (to_.ProducerAs<op::Broadcast>(operands[0]) != nullptr) {
                operands[0] = to_.Producer(operands[0])->operands[0];
            }
        }
    }

    // A division by a power of two is a multiplication.
    Status MultiplyByReciprocal(const Node& node,
                                Operation& operation,
                                std::vector<ValueId>& operands) {
        const auto* map = std::get_if<op::Map>(&operation);
        if (map == nullptr || map->function != ScalarFunction::kDiv) {
            return OkStatus();
        }
        // The divisor, through views of one element.
        ValueId divisor = operands[1];
        while (to_.ProducerAs<op::Broadcast>(divisor) != nullptr ||
               to_.ProducerAs<op::Reshape>(divisor) != nullptr) {
            divisor = to_.Producer(divisor)->operands[0];
        }
        const Value& value = to_[divisor];
        if (value.kind != ValueKind::kConstant || value.type.shape.Volume() != Expr(1) ||
            !IsFloat(value.type.element)) {
            return OkStatus();
        }
        const double number = value.constant.At(0).number;
        int exponent = 0;
        if (std::abs(std::frexp(number, &exponent)) != 0.5 || std::abs(exponent) > 6) {
            return OkStatus();
        }
        uint8_t* data = nullptr;
        Tensor reciprocal = Tensor::Zeros(value.type.element, {}, &data);
        WriteElement(value.type.element, Scalar::Float(1 / number), data);
        operands[1] = to_.AddConstant(node.name, std::move(reciprocal));
        const Shape& shape = to_.ShapeOf(operands[0]);
        if (shape.rank() > 0) {
            const Shape ones(std::vector<Expr>(shape.rank(), Expr(1)));
            for (const Operation& view :
                 {Operation(op::Reshape{ones}), Operation(op::Broadcast{shape})}) {
                FORNAX_ASSIGN_OR_RETURN(const NodeId id,
                                        to_.AddNode(node.name, view, {operands[1]}));
                operands[1] = to_[id].results[0];
            }
        }
        operation = op::Map{ScalarFunction::kMul};
        return OkStatus();
    }

    Status Fold(NodeId id, const std::vector<ValueId>& results) {
        const Node& node = to_[id];
        if (Is<op::SizeOf>(node.operation)) {
            const Expr& value = std::get<op::SizeOf>(node.operation).value;
            if (!value.is_constant()) {
                return OkStatus();
            }
        }
        int64_t operand_elements = 1, result_elements = 0;
        std::vector<Tensor> operands;
        for (const ValueId operand : node.operands) {
            const Value& value = to_[operand];
            if (value.kind != ValueKind::kConstant || value.type.element == ElementType::kString) {
                return OkStatus();
            }
            operand_elements += value.constant.count();
            operands.push_back(value.constant);
        }
        for (const ValueId result : results) {
            const auto dims = to_.ShapeOf(result).Constants();
            if (!dims) {
                return OkStatus();
            }
            int64_t count = 1;
            for (const int64_t dim : *dims) {
                count *= dim;
            }
            result_elements += count;
        }
        if (Is<op::Broadcast>(node.operation) && result_elements > operand_elements &&
            result_elements > kMaxRepeated) {
            return OkStatus();
        }
        if (result_elements > kMaxFoldedElements ||
            (result_elements > 64 && result_elements > kMaxFoldedGrowth * operand_elements)) {
            return OkStatus();
        }
        Result<std::vector<Tensor>> values = EvaluateNode(node.operation, operands, {}, {});
        if (!values.ok()) {
            return OkStatus();  // what cannot be computed now says so when it runs
        }
        for (size_t i = 0; i < results.size(); ++i) {
            to_.MakeConstant(results[i], std::move((*values)[i]));
        }
        return OkStatus();
    }

    Cloner& cloner_;
    Graph& to_;
    std::map<std::string, std::vector<ValueId>> known_;
    std::map<std::string, ValueId> constants_;  // by type and bytes
    std::set<ValueId> outputs_;                 // of the graph that is simplified
    std::set<ValueId> kept_;                    // what they are in the new one
};

}  // namespace

Result<Graph> Simplify(const Graph& graph) {
    Graph result(graph.name());
    Cloner cloner(graph, result);
    cloner.CopyInputs();
    Simplifier simplifier(graph, cloner, result);
    for (const Node& node : graph.nodes()) {
        FORNAX_RETURN_IF_ERROR(simplifier.Visit(node));
    }
    cloner.CopyOutputs();
    result.Compact();
    return result;
}

}  // namespace fornax::graph
