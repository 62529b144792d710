// Products of many rows with constant matrices as products of bf16 that are added in f32: those
// whose operands are bf16, and those of f32 if they may be rounded.
//
// Kernels multiply words of two bf16 that follow each other along k (loop/byte_product.h) and have
// no instructions but loads beside the multiplications. So the values around a product lie in
// memory as bf16: the cast goes below the views that a product looks through, where whoever
// computes a value that only products read stores it so. The constants are packed into panels of 16
// columns of such words.
#include <algorithm>
#include <map>
#include <optional>

#include "compiler/graph/loop/few_rows.h"
#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/narrowing.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

constexpr uint32_t kPlaces = 2;  // of a word
// Kernels compute 32 columns at once.
constexpr int64_t kLeastColumns = 32;
constexpr int64_t kLeastDepth = 32;
// What is multiplied less often costs more to cast than the multiplications save; the schedule
// would not even store it.
constexpr int64_t kLeastReads = 48;

// A product of activations x and constant weights.
struct Candidate {
    size_t operand = 0;  // the weights
    size_t column = 0;   // their axis that the result has, as its last one
    char word = 0;       // the label along which x's elements follow each other
};

bool IsView(const Operation& operation) {
    return Is<op::Reshape>(operation) || Is<op::Permute>(operation) ||
           Is<op::Broadcast>(operation) || Is<op::Slice>(operation) || Is<op::Window>(operation) ||
           Is<op::Pad>(operation);
}

// The elements of the value that a view looks at.
int64_t StoredElements(const Graph& graph, ValueId value) {
    const Node* node = graph.Producer(value);
    while (node != nullptr && IsView(node->operation)) {
        value = node->operands[0];
        node = graph.Producer(value);
    }
    return std::max<int64_t>(1, graph.sizes().Hint(graph.ShapeOf(value).Volume()));
}

// Whether elements along an axis follow each other in memory, in pairs that begin at a multiple of
// two. `value` is looked through views.
bool LiesInWords(const Graph& graph, ValueId value, size_t axis) {
    const auto even = [](const Expr& expr) { return Mod(expr, kPlaces).constant() == 0; };
    while (even(graph.ShapeOf(value)[axis])) {
        const Node* node = graph.Producer(value);
        const size_t rank = graph.ShapeOf(value).rank();
        if (node == nullptr) {
            return axis + 1 == rank;
        }
        if (const auto* permute = std::get_if<op::Permute>(&node->operation)) {
            axis = static_cast<size_t>(permute->order[axis]);
        } else if (Is<op::Reshape>(node->operation)) {
            const size_t from = graph.ShapeOf(node->operands[0]).rank();
            if (axis + 1 != rank || from == 0) {
                return false;
            }
            axis = from - 1;
        } else if (Is<op::Window>(node->operation)) {
            if (axis + 1 == rank ||
                std::get<op::Window>(node->operation).axis == static_cast<int64_t>(axis)) {
                return false;
            }
        } else if (const auto* pad = std::get_if<op::Pad>(&node->operation)) {
            if (pad->low[axis] != Expr(0) || pad->high[axis] != Expr(0) ||
                pad->interior[axis] != 0) {
                return false;
            }
        } else if (const auto* slice = std::get_if<op::Slice>(&node->operation)) {
            if (slice->steps[axis] != 1 || !even(slice->starts[axis])) {
                return false;
            }
        } else if (Is<op::Broadcast>(node->operation)) {
            if (graph.ShapeOf(node->operands[0])[axis] != graph.ShapeOf(value)[axis]) {
                return false;
            }
        } else {
            return axis + 1 == rank;
        }
        value = node->operands[0];
    }
    return false;
}

std::optional<Candidate> Find(const Graph& graph,
                              const op::Contract& contract,
                              const std::vector<ValueId>& operands,
                              bool may_round) {
    const ElementType element = graph.TypeOf(operands[0]).element;
    const bool is_bfloat16 = element == ElementType::kBF16;
    if (contract.result.empty() || graph.TypeOf(operands[1]).element != element ||
        !(is_bfloat16 || (element == ElementType::kF32 && may_round)) ||
        !(contract.accumulate == ElementType::kF32 ||
          (is_bfloat16 && contract.accumulate == element))) {
        return std::nullopt;
    }
    for (size_t operand = 0; operand < 2; ++operand) {
        const ValueId x = operands[1 - operand];
        const Value& weights = graph[operands[operand]];
        const std::string& own = operand == 0 ? contract.a : contract.b;
        const std::string& others = operand == 0 ? contract.b : contract.a;
        const size_t column = own.find(contract.result.back());
        if (weights.kind != ValueKind::kConstant || graph[x].kind == ValueKind::kConstant ||
            column == std::string::npos || weights.constant.count() == 0 ||
            weights.constant.dims[column] < kLeastColumns ||
            weights.constant.count() / weights.constant.dims[column] < kLeastDepth) {
            continue;
        }
        // The result has the column last and what x alone has; all else is summed over and in both.
        bool fits = others.size() + 1 == contract.result.size() + own.size() - 1 &&
                    others.find(own[column]) == std::string::npos;
        for (size_t axis = 0; fits && axis < own.size(); ++axis) {
            fits = axis == column || (others.find(own[axis]) != std::string::npos &&
                                      contract.result.find(own[axis]) == std::string::npos);
        }
        int64_t rows = 1;
        Candidate found{operand, column, 0};
        for (size_t axis = 0; fits && axis < others.size(); ++axis) {
            if (own.find(others[axis]) == std::string::npos) {
                rows *= std::max<int64_t>(1, graph.sizes().Hint(graph.ShapeOf(x)[axis]));
                fits = rows < INT32_MAX;
            } else if (LiesInWords(graph, x, axis)) {
                found.word = others[axis];
            }
        }
        const double multiplications =
            static_cast<double>(rows) * static_cast<double>(weights.constant.count());
        if (fits && rows > loop::kMostFewRows && found.word != 0 &&
            multiplications >=
                static_cast<double>(kLeastReads) * static_cast<double>(StoredElements(graph, x))) {
            return found;
        }
    }
    return std::nullopt;
}

class Narrowing : ProductRewriter {
  public:
    Narrowing(Cloner& cloner, Graph& to, bool may_round)
        : ProductRewriter(cloner, to), may_round_(may_round) {}

    Status Visit(const Node& node) {
        return VisitProduct(
            node, [this](const auto&... product) { return Find(product..., may_round_); },
            [this](const auto&... product) { return Rewrite(product...); });
    }

  private:
    // The value as bf16, by the same views of another one.
    Result<ValueId> Narrowed(ValueId value) {
        if (to_.TypeOf(value).element == ElementType::kBF16) {
            return value;
        }
        const auto known = narrowed_.find(value);
        if (known != narrowed_.end()) {
            return known->second;
        }
        const Node* node = to_.Producer(value);
        ValueId result;
        if (node != nullptr && IsView(node->operation)) {
            const Operation view = node->operation;
            std::vector<ValueId> operands = node->operands;
            for (ValueId& operand : operands) {
                FORNAX_ASSIGN_OR_RETURN(operand, Narrowed(operand));
            }
            FORNAX_ASSIGN_OR_RETURN(result, Add(view, std::move(operands)));
        } else if (to_[value].kind == ValueKind::kConstant) {
            const Tensor from = to_[value].constant;
            result = to_.AddConstant(name_, NarrowedTensor(from));
        } else {
            FORNAX_ASSIGN_OR_RETURN(result, Add(op::Cast{ElementType::kBF16}, {value}));
        }
        narrowed_.emplace(value, result);
        return result;
    }

    static Tensor NarrowedTensor(const Tensor& from) {
        uint8_t* data = nullptr;
        Tensor to = Tensor::Zeros(ElementType::kBF16, from.dims, &data);
        for (int64_t i = 0; i < from.count(); ++i) {
            WriteElement(ElementType::kBF16, from.At(i), data + i * BytesOf(ElementType::kBF16));
        }
        return to;
    }

    Result<ValueId> Rewrite(const op::Contract& contract,
                            const Candidate& found,
                            const std::vector<ValueId>& operands) {
        const std::string& own = found.operand == 0 ? contract.a : contract.b;
        const std::string& others = found.operand == 0 ? contract.b : contract.a;
        const std::string rows(contract.result.begin(), contract.result.end() - 1);
        // x: its rows, what else is summed over, the words and the places in them.
        FORNAX_ASSIGN_OR_RETURN(ValueId x, Narrowed(operands[1 - found.operand]));
        const size_t word_axis = others.find(found.word);
        std::vector<Expr> dims(to_.ShapeOf(x).dims().begin(), to_.ShapeOf(x).dims().end());
        dims[word_axis] = FloorDiv(dims[word_axis], kPlaces);
        dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(word_axis) + 1, Expr(kPlaces));
        FORNAX_ASSIGN_OR_RETURN(x, Add(op::Reshape{Shape(std::move(dims))}, {x}));
        Axes order;
        std::string x_labels, depth;
        const auto take = [&](size_t axis) {
            order.push_back(static_cast<int64_t>(axis + (axis > word_axis ? 1 : 0)));
            x_labels += others[axis];
        };
        for (size_t axis = 0; axis < others.size(); ++axis) {
            if (own.find(others[axis]) == std::string::npos) {
                take(axis);
            }
        }
        for (size_t axis = 0; axis < others.size(); ++axis) {
            if (own.find(others[axis]) != std::string::npos && axis != word_axis) {
                take(axis);
                depth += others[axis];
            }
        }
        take(word_axis);
        depth += found.word;
        order.push_back(static_cast<int64_t>(word_axis) + 1);
        FORNAX_ASSIGN_OR_RETURN(x, Add(op::Permute{std::move(order)}, {x}));

        const std::string fresh = NewLabels(contract, 3);
        const std::string place = fresh.substr(0, 1), column = fresh.substr(1, 2);
        const Tensor& weights = to_[operands[found.operand]].constant;
        const int64_t columns = weights.dims[found.column];
        Tensor packed = Pack(weights, own, found.column, depth);
        const ValueId panels = to_.AddConstant(name_ + ".packed", std::move(packed));
        std::vector<Expr> result;
        for (const char label : rows) {
            result.push_back(to_.ShapeOf(operands[1 - found.operand])[others.find(label)]);
        }
        FORNAX_ASSIGN_OR_RETURN(
            ValueId y, Add(op::Contract{x_labels + place, column[0] + depth + column[1] + place,
                                        rows + column, ElementType::kF32},
                           {x, panels}));
        if (contract.accumulate != ElementType::kF32) {
            FORNAX_ASSIGN_OR_RETURN(y, Add(op::Cast{contract.accumulate}, {y}));
        }
        return WithoutPanels(y, std::move(result), columns);
    }

    // [panels, depth..., 16, 2], the last label of `depth` in words.
    static Tensor Pack(const Tensor& weights,
                       const std::string& labels,
                       size_t column_axis,
                       const std::string& depth) {
        std::vector<int64_t> strides(weights.dims.size(), 1);
        for (size_t axis = strides.size() - 1; axis-- > 0;) {
            strides[axis] = strides[axis + 1] * weights.dims[axis + 1];
        }
        const int64_t columns = weights.dims[column_axis];
        std::vector<int64_t> dims = {(columns + kPanel - 1) / kPanel};
        std::vector<int64_t> offsets = {0};  // of each k, the last label's innermost
        for (const char label : depth) {
            const size_t axis = labels.find(label);
            std::vector<int64_t> next;
            for (const int64_t offset : offsets) {
                for (int64_t i = 0; i < weights.dims[axis]; ++i) {
                    next.push_back(offset + i * strides[axis]);
                }
            }
            offsets = std::move(next);
            dims.push_back(weights.dims[axis]);
        }
        dims.back() /= kPlaces;
        dims.push_back(kPanel);
        dims.push_back(kPlaces);
        uint8_t* data = nullptr;
        Tensor packed = Tensor::Zeros(ElementType::kBF16, dims, &data);
        const int64_t stride = strides[column_axis];
        const auto pack = [&](const auto* from, auto convert) {
            auto* to = reinterpret_cast<uint16_t*>(data);
            for (int64_t first = 0; first < columns; first += kPanel) {
                const int64_t end = std::min(first + kPanel, columns);
                for (size_t k = 0; k < offsets.size(); ++k) {
                    const auto* row = from + offsets[k];
                    uint16_t* word = to + k / kPlaces * kPlaces * kPanel + k % kPlaces;
                    for (int64_t column = first; column < end; ++column) {
                        word[(column - first) * kPlaces] = convert(row[column * stride]);
                    }
                }
                to += static_cast<int64_t>(offsets.size()) * kPanel;
            }
        };
        const uint8_t* from = weights.data->data();
        if (weights.element == ElementType::kBF16) {
            pack(reinterpret_cast<const uint16_t*>(from), [](uint16_t bits) { return bits; });
        } else {
            pack(reinterpret_cast<const float*>(from), RoundedToBf16);
        }
        return packed;
    }

    bool may_round_;
    std::map<ValueId, ValueId> narrowed_;
};

}  // namespace

Result<Graph> NarrowProducts(const Graph& graph, bool may_round) {
    return VisitGraph<Narrowing>(graph, may_round);
}

}  // namespace fornax::graph
