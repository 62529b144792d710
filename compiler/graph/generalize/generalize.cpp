// Fits sizes, and says where the result is not worth a plan.
#include "compiler/graph/generalize/generalize.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "compiler/graph/generalize/sizes_of_graph.h"

namespace fornax::graph {
namespace {

// Affine functions and their values are far from where int64 ends. Sizes are no larger:
// kMaxElements.
constexpr int64_t kMaxSize = int64_t{1} << 48;
using Wide = __int128;

size_t InputSizes(const Graph& graph) {
    size_t count = 0;
    for (const ValueId input : graph.inputs()) {
        count += graph.ShapeOf(input).rank();
    }
    return count;
}

bool IsTooLarge(Wide size) {
    return size < -kMaxSize || size > kMaxSize;
}

// Whether the lists may be of sizes of the graph.
bool AreSizes(const Graph& graph, std::span<const std::span<const int64_t>> members) {
    return std::ranges::all_of(members, [&](std::span<const int64_t> member) {
        return member.size() == members[0].size() && member.size() >= InputSizes(graph) &&
               std::ranges::none_of(member, IsTooLarge);
    });
}

// What size i is times sizes x and y in all members; nullopt if it is no such multiple.
std::optional<int64_t> CommonQuotient(std::span<const std::span<const int64_t>> members,
                                      size_t i,
                                      size_t x,
                                      size_t y) {
    std::optional<Wide> common;
    for (const std::span<const int64_t> member : members) {
        const Wide product = Wide{member[x]} * member[y];
        if (member[i] % product != 0 || (common && *common != member[i] / product)) {
            return std::nullopt;
        }
        common = member[i] / product;
    }
    return static_cast<int64_t>(*common);
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

Generalization::Growing Generalization::GrowingAt(
    size_t place,
    size_t number,
    std::span<const std::span<const int64_t>> members) {
    Growing growing{Symbol(fmt::format("size{}", number)), place};
    const auto is_multiple = [&](std::span<const int64_t> member) {
        return member[place] % (growing.granule * 2) == 0;
    };
    while (growing.granule < kMostGranule && std::ranges::all_of(members, is_multiple)) {
        growing.granule *= 2;
    }
    growing.hint = members.back()[place] / growing.granule;
    growing.range = {1, INT32_MAX / growing.granule};
    return growing;
}

void Generalization::RestrictRanges(std::span<const std::span<const int64_t>> members) {
    for (size_t i = 0; i < sizes_.size(); ++i) {
        const std::span<const ExprTerm> terms = sizes_[i].terms();
        const auto is_negative = [&](std::span<const int64_t> member) { return member[i] < 0; };
        if (terms.size() != 1 || terms[0].factors.size() != 1 ||
            std::ranges::any_of(members, is_negative)) {
            continue;
        }
        const int64_t factor = terms[0].coefficient, at_zero = sizes_[i].constant_part();
        for (Growing& growing : growing_) {
            if (!sizes_[i].Uses(growing.symbol)) {
                continue;
            }
            Range& range = growing.range;
            if (factor > 0) {
                range.low = std::max(range.low, (factor - 1 - at_zero) / factor);
            } else {
                range.high = std::min(range.high, at_zero / -factor);
            }
        }
    }
}

std::optional<Generalization> Generalization::Between(const Graph& graph,
                                                      std::span<const int64_t> a,
                                                      std::span<const int64_t> b) {
    const std::array members = {a, b};
    if (!AreSizes(graph, members)) {
        return std::nullopt;
    }
    const auto end = a.begin() + static_cast<std::ptrdiff_t>(InputSizes(graph));
    const auto differs = std::mismatch(a.begin(), end, b.begin()).first;
    if (differs == end) {
        return std::nullopt;
    }
    const auto at = static_cast<size_t>(differs - a.begin());
    if (a[at] < 1 || b[at] < 1) {
        return std::nullopt;
    }
    Generalization made;
    const Growing& growing = made.growing_.emplace_back(GrowingAt(at, 0, members));
    const int64_t first = a[at] / growing.granule, step = growing.hint - first;
    made.sizes_.reserve(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
        const int64_t difference = b[i] - a[i];
        int64_t at_zero = 0;
        if (difference % step != 0 || __builtin_mul_overflow(difference / step, first, &at_zero) ||
            __builtin_sub_overflow(a[i], at_zero, &at_zero) || IsTooLarge(at_zero)) {
            return std::nullopt;
        }
        made.sizes_.push_back(Expr(growing.symbol) * (difference / step) + at_zero);
    }
    made.RestrictRanges(members);
    return made;
}

std::optional<Generalization> Generalization::Among(const Graph& graph,
                                                    std::span<const int64_t> a,
                                                    std::span<const int64_t> b,
                                                    std::span<const int64_t> c) {
    const std::array members = {a, b, c};
    if (!AreSizes(graph, members)) {
        return std::nullopt;
    }
    const size_t inputs = InputSizes(graph);
    const auto differs = [&](size_t i) { return a[i] != b[i] || a[i] != c[i]; };
    size_t x = 0;
    while (x < inputs && !differs(x)) {
        ++x;
    }
    // Differences of sizes are below 2^49, and so their products below 2^98.
    const auto determinant = [&](size_t i, size_t j) {
        return Wide{b[i] - a[i]} * (c[j] - a[j]) - Wide{c[i] - a[i]} * (b[j] - a[j]);
    };
    size_t y = x + 1;
    while (y < inputs && determinant(x, y) == 0) {
        ++y;
    }
    if (y >= inputs) {
        return std::nullopt;
    }
    for (const std::span<const int64_t> member : members) {
        if (member[x] < 1 || member[y] < 1) {
            return std::nullopt;
        }
    }
    Generalization made;
    made.growing_ = {GrowingAt(x, 0, members), GrowingAt(y, 1, members)};
    const Growing &first = made.growing_[0], &second = made.growing_[1];
    const Wide whole = determinant(x, y);
    made.sizes_.reserve(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
        const std::optional<int64_t> both = CommonQuotient(members, i, x, y);
        if (differs(i) && both) {
            made.sizes_.push_back(Expr(first.symbol) * Expr(second.symbol) *
                                  (*both * first.granule * second.granule));
            continue;
        }
        const Wide of_first = determinant(i, y) * first.granule,
                   of_second = determinant(x, i) * second.granule;
        if (of_first % whole != 0 || of_second % whole != 0) {
            return std::nullopt;
        }
        const Wide by_first = of_first / whole, by_second = of_second / whole;
        if (IsTooLarge(by_first) || IsTooLarge(by_second)) {
            return std::nullopt;
        }
        const Wide at_zero =
            a[i] - by_first * (a[x] / first.granule) - by_second * (a[y] / second.granule);
        if (IsTooLarge(at_zero)) {
            return std::nullopt;
        }
        made.sizes_.push_back(Expr(first.symbol) * static_cast<int64_t>(by_first) +
                              Expr(second.symbol) * static_cast<int64_t>(by_second) +
                              static_cast<int64_t>(at_zero));
    }
    made.RestrictRanges(members);
    return made;
}

std::set<std::string> Generalization::symbols() const {
    std::set<std::string> names;
    for (const Growing& growing : growing_) {
        names.insert(growing.symbol.name());
    }
    return names;
}

bool Generalization::Covers(std::span<const int64_t> sizes) const {
    if (sizes.size() != sizes_.size()) {
        return false;
    }
    Bindings values;
    for (const Growing& growing : growing_) {
        if (sizes[growing.at] < 1 || sizes[growing.at] > kMaxSize ||
            sizes[growing.at] % growing.granule != 0) {
            return false;
        }
        const int64_t value = sizes[growing.at] / growing.granule;
        if (value < growing.range.low || value > growing.range.high) {
            return false;
        }
        values[growing.symbol] = value;
    }
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
    for (const Growing& growing : growing_) {
        facts.Declare(growing.symbol.name(), growing.hint, growing.range);
    }
    FORNAX_ASSIGN_OR_RETURN(Graph graph, WithSizes(member, std::move(name), sizes_, facts));
    for (const Guard& guard : graph.sizes().guards()) {
        if (guard.relation == Relation::kEqual) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("The sizes would have to be such that {}.", guard.ToString())};
        }
    }
    for (const Value& value : graph.values()) {
        for (const Expr& dim : value.type.shape.dims()) {
            if (dim.Bounds(graph.sizes().ranges()).low < 0) {
                return Error{
                    ErrorCode::kUnsupported,
                    fmt::format("The size {} would have to be no less than 0.", dim.ToString())};
            }
        }
    }
    FORNAX_RETURN_IF_ERROR(CheckWeights(graph, weights));
    FORNAX_RETURN_IF_ERROR(Verify(graph));
    return graph;
}

}  // namespace fornax::graph
