// Fits sizes, and says where the result is not worth a plan.
#include "compiler/graph/generalize/generalize.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/generalize/sizes_of_graph.h"

namespace fornax::graph {
namespace {

// Affine functions and their values are far from where int64 ends. Sizes are no larger:
// kMaxElements.
constexpr int64_t kMaxSize = int64_t{1} << 48;

size_t InputSizes(const Graph& graph) {
    size_t count = 0;
    for (const ValueId input : graph.inputs()) {
        count += graph.ShapeOf(input).rank();
    }
    return count;
}

bool IsSymbolic(const TensorType& type) {
    return std::ranges::any_of(type.shape.dims(),
                               [](const Expr& dim) { return !dim.is_constant(); });
}

// What a value is made of.
enum class Origin : uint8_t {
    kNothing,   // constants and positions
    kWeights,   // weights for any number of rows, and nothing else that changes
    kFewSizes,  // the same of weights of which one is not
    kOther,
};

Status CheckWeights(Graph& graph, std::span<const WeightInput> weights) {
    std::vector<Origin> origins(graph.values().size(), Origin::kOther);
    for (size_t v = 0; v < origins.size(); ++v) {
        if (graph.values()[v].kind == ValueKind::kConstant) {
            origins[v] = Origin::kNothing;
        }
    }
    for (const WeightInput& weight : weights) {
        if (weight.input >= graph.inputs().size()) {
            continue;
        }
        const ValueId input = graph.inputs()[weight.input];
        origins[input.value()] = weight.any_rows ? Origin::kWeights : Origin::kFewSizes;
        if (IsSymbolic(graph.TypeOf(input))) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("The size of the weight {} differs.", graph[input].name)};
        }
    }
    std::vector<Expr> rows;
    for (const Node& node : graph.nodes()) {
        const bool is_product = Is<op::Contract>(node.operation) || !node.bodies.empty();
        Origin origin = Is<op::ReadState>(node.operation) ? Origin::kOther : Origin::kNothing;
        Origin of_weights = Origin::kNothing;
        std::vector<Expr> symbolic;
        for (const ValueId operand : node.operands) {
            const Origin of_operand = origins[operand.value()];
            origin = std::max(origin, of_operand);
            if (of_operand != Origin::kOther) {
                of_weights = std::max(of_weights, of_operand);
                continue;
            }
            std::ranges::copy_if(graph.ShapeOf(operand).dims(), std::back_inserter(symbolic),
                                 [](const Expr& dim) { return !dim.is_constant(); });
        }
        if (is_product && of_weights == Origin::kFewSizes && !symbolic.empty()) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("The number of rows that {} multiplies by weights differs.",
                                     node.name)};
        }
        if (is_product && of_weights == Origin::kWeights) {
            rows.insert(rows.end(), symbolic.begin(), symbolic.end());
        }
        for (const ValueId result : node.results) {
            if (graph[result].kind == ValueKind::kResult) {
                origins[result.value()] = origin;
            }
        }
    }
    for (const Expr& count : rows) {
        if (graph.sizes().Hint(count) <= Generalization::kFewRows) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("{} rows, which differ, are multiplied by weights.",
                                     graph.sizes().Hint(count))};
        }
        graph.sizes().AddGuard({Relation::kLess, Generalization::kFewRows, count});
    }
    return OkStatus();
}

}  // namespace

std::optional<Generalization> Generalization::Between(const Graph& graph,
                                                      std::span<const int64_t> a,
                                                      std::span<const int64_t> b) {
    if (a.size() != b.size() || a.size() < InputSizes(graph)) {
        return std::nullopt;
    }
    const auto is_too_large = [](int64_t size) { return size < -kMaxSize || size > kMaxSize; };
    if (std::ranges::any_of(a, is_too_large) || std::ranges::any_of(b, is_too_large)) {
        return std::nullopt;
    }
    Generalization made{Symbol("size0")};
    const auto end = a.begin() + static_cast<std::ptrdiff_t>(InputSizes(graph));
    const auto differs = std::mismatch(a.begin(), end, b.begin()).first;
    if (differs == end) {
        return std::nullopt;
    }
    made.at_ = static_cast<size_t>(differs - a.begin());
    if (a[made.at_] < 1 || b[made.at_] < 1) {
        return std::nullopt;
    }
    while (made.granule_ < kMostGranule && a[made.at_] % (made.granule_ * 2) == 0 &&
           b[made.at_] % (made.granule_ * 2) == 0) {
        made.granule_ *= 2;
    }
    const int64_t first = a[made.at_] / made.granule_;
    made.hint_ = b[made.at_] / made.granule_;
    made.sizes_.reserve(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
        const int64_t difference = b[i] - a[i], step = made.hint_ - first;
        int64_t at_zero = 0;
        if (difference % step != 0 || __builtin_mul_overflow(difference / step, first, &at_zero) ||
            __builtin_sub_overflow(a[i], at_zero, &at_zero) || is_too_large(at_zero)) {
            return std::nullopt;
        }
        made.sizes_.push_back(Expr(made.symbol_) * (difference / step) + at_zero);
    }
    return made;
}

bool Generalization::Covers(std::span<const int64_t> sizes) const {
    if (sizes.size() != sizes_.size() || sizes[at_] < 1 || sizes[at_] % granule_ != 0) {
        return false;
    }
    const Bindings values = {{symbol_, sizes[at_] / granule_}};
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes_[i].Evaluate(values) != sizes[i]) {
            return false;
        }
    }
    return true;
}

Result<Graph> Generalization::Apply(const Graph& member,
                                    std::string name,
                                    std::span<const WeightInput> weights) const {
    SizeFacts facts;
    facts.Declare(symbol_.name(), hint_, {1, INT32_MAX / granule_});
    FORNAX_ASSIGN_OR_RETURN(Graph graph, WithSizes(member, std::move(name), sizes_, facts));
    for (const Guard& guard : graph.sizes().guards()) {
        if (guard.relation == Relation::kEqual) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("The sizes would have to be such that {}.", guard.ToString())};
        }
    }
    FORNAX_RETURN_IF_ERROR(CheckWeights(graph, weights));
    FORNAX_RETURN_IF_ERROR(Verify(graph));
    return graph;
}

}  // namespace fornax::graph
