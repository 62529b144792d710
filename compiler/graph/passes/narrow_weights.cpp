// Constant matrices of products of few rows as bf16.
//
// Such a product takes as long as its weights take to be read, so half the bytes are half the time.
// Two ks of a column are one word; words lie in panels of 16 columns, as PackWeights() lays floats
// out. The kernel makes f32 of them in registers: only weights are rounded.
#include <cstring>
#include <optional>

#include "compiler/graph/loop/few_rows.h"
#include "compiler/graph/passes/cloner.h"
#include "compiler/graph/passes/narrowing.h"
#include "compiler/graph/passes/passes.h"

namespace fornax::graph {
namespace {

constexpr int64_t kPlaces = 2;  // of a word
// Smaller matrices stay in a cache as they are.
constexpr int64_t kLeastElements = 4096;

// A product [..., k] x [k, n] with few rows.
struct Candidate {
    size_t operand = 0;  // the weights
    size_t k_axis = 0;   // of the weights
    size_t x_axis = 0;   // k's of the other operand
    char k = 0;
};

std::optional<Candidate> Find(const Graph& graph,
                              const op::Contract& contract,
                              const std::vector<ValueId>& operands) {
    if (contract.accumulate != ElementType::kF32 || contract.result.empty()) {
        return std::nullopt;
    }
    const std::string* labels[] = {&contract.a, &contract.b};
    for (size_t operand = 0; operand < 2; ++operand) {
        const Value& weights = graph[operands[operand]];
        const std::string& own = *labels[operand];
        const std::string& others = *labels[1 - operand];
        const size_t column = own.find(contract.result.back());
        if (weights.kind != ValueKind::kConstant || weights.type.element != ElementType::kF32 ||
            own.size() != 2 || column == std::string::npos ||
            weights.constant.count() < kLeastElements) {
            continue;
        }
        const Candidate found{operand, 1 - column, others.find(own[1 - column]), own[1 - column]};
        if (found.x_axis == std::string::npos ||
            contract.result.find(found.k) != std::string::npos ||
            others.find(own[column]) != std::string::npos ||
            weights.constant.dims[found.k_axis] % kPlaces != 0) {
            continue;
        }
        // All others of the result are rows, and k is all that is summed over.
        int64_t rows = 1;
        bool few = others.size() == contract.result.size();
        for (size_t axis = 0; few && axis < others.size(); ++axis) {
            const std::optional<int64_t> dim =
                graph.ShapeOf(operands[1 - operand])[axis].constant();
            if (axis != found.x_axis) {
                few = dim && *dim > 0 && *dim <= loop::kMostFewRows / rows;
                rows *= few ? *dim : 1;
            }
        }
        if (few) {
            return found;
        }
    }
    return std::nullopt;
}

class Narrowing : ProductRewriter {
  public:
    Narrowing(Cloner& cloner, Graph& to) : ProductRewriter(cloner, to) {}

    Status Visit(const Node& node) {
        return VisitProduct(node, Find,
                            [this](const auto&... product) { return Rewrite(product...); });
    }

  private:
    Result<ValueId> Spread(uint32_t value, const Shape& shape) {
        uint8_t* data = nullptr;
        Tensor number =
            Tensor::Zeros(ElementType::kU32, std::vector<int64_t>(shape.rank(), 1), &data);
        std::memcpy(data, &value, sizeof(value));
        return Add(op::Broadcast{shape}, {to_.AddConstant(name_, std::move(number))});
    }

    Result<ValueId> Rewrite(const op::Contract& contract,
                            const Candidate& found,
                            const std::vector<ValueId>& operands) {
        const Tensor& weights = to_[operands[found.operand]].constant;
        const int64_t columns = weights.dims[1 - found.k_axis];
        const int64_t words = weights.dims[found.k_axis] / kPlaces;
        const int64_t panels = (columns + kPanel - 1) / kPanel;
        const Shape shape({panels, words, kPlaces, kPanel});
        ValueId packed = to_.AddConstant(name_ + ".packed", Pack(weights, found.k_axis));
        FORNAX_ASSIGN_OR_RETURN(packed,
                                Add(op::Reshape{Shape({panels, words, 1, kPanel})}, {packed}));
        FORNAX_ASSIGN_OR_RETURN(packed, Add(op::Broadcast{shape}, {packed}));
        // The first k is in the lower half: it is shifted into the upper one.
        FORNAX_ASSIGN_OR_RETURN(ValueId place, Add(op::Iota{ElementType::kU32, shape, 2}, {}));
        FORNAX_ASSIGN_OR_RETURN(const ValueId one, Spread(1, shape));
        FORNAX_ASSIGN_OR_RETURN(const ValueId half, Spread(16, shape));
        FORNAX_ASSIGN_OR_RETURN(const ValueId upper, Spread(0xFFFF0000, shape));
        FORNAX_ASSIGN_OR_RETURN(place, Add(op::Map{ScalarFunction::kSub}, {one, place}));
        FORNAX_ASSIGN_OR_RETURN(place, Add(op::Map{ScalarFunction::kMul}, {place, half}));
        FORNAX_ASSIGN_OR_RETURN(packed, Add(op::Map{ScalarFunction::kShiftLeft}, {packed, place}));
        FORNAX_ASSIGN_OR_RETURN(packed, Add(op::Map{ScalarFunction::kAnd}, {packed, upper}));
        FORNAX_ASSIGN_OR_RETURN(packed, Add(op::Bitcast{ElementType::kF32}, {packed}));

        ValueId x = operands[1 - found.operand];
        std::vector<Expr> dims(to_.ShapeOf(x).dims().begin(), to_.ShapeOf(x).dims().end());
        dims[found.x_axis] = words;
        dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(found.x_axis) + 1, Expr(kPlaces));
        FORNAX_ASSIGN_OR_RETURN(x, Add(op::Reshape{Shape(std::move(dims))}, {x}));
        const std::string fresh = NewLabels(contract, 4);
        const std::string depth = fresh.substr(0, 2), column = fresh.substr(2, 2);
        std::string x_labels = found.operand == 0 ? contract.b : contract.a;
        x_labels.replace(found.x_axis, 1, depth);
        const std::string rows(contract.result.begin(), contract.result.end() - 1);
        std::vector<Expr> result;
        for (const char label : rows) {
            result.push_back(to_.ShapeOf(x)[x_labels.find(label)]);
        }
        const std::string weight_labels = column.substr(0, 1) + depth + column.substr(1);
        FORNAX_ASSIGN_OR_RETURN(
            ValueId y, Add(op::Contract{x_labels, weight_labels, rows + column, ElementType::kF32},
                           {x, packed}));
        return WithoutPanels(y, std::move(result), columns);
    }

    static Tensor Pack(const Tensor& weights, size_t k_axis) {
        const int64_t columns = weights.dims[1 - k_axis], depth = weights.dims[k_axis];
        const int64_t panels = (columns + kPanel - 1) / kPanel, words = depth / kPlaces;
        const int64_t column_stride = k_axis == 0 ? 1 : depth;
        const int64_t depth_stride = k_axis == 0 ? columns : 1;
        const auto* from = reinterpret_cast<const float*>(weights.data->data());
        uint8_t* data = nullptr;
        Tensor packed = Tensor::Zeros(ElementType::kU32, {panels, words, kPanel}, &data);
        auto* to = reinterpret_cast<uint32_t*>(data);
        for (int64_t column = 0; column < columns; ++column) {
            for (int64_t word = 0; word < words; ++word) {
                const float* first = from + column * column_stride + kPlaces * word * depth_stride;
                to[(column / kPanel * words + word) * kPanel + column % kPanel] =
                    RoundedToBf16(first[0]) | uint32_t{RoundedToBf16(first[depth_stride])} << 16;
            }
        }
        return packed;
    }
};

}  // namespace

Result<Graph> NarrowWeights(const Graph& graph) {
    return VisitGraph<Narrowing>(graph);
}

}  // namespace fornax::graph
