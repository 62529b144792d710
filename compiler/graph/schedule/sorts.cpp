// Sorts: by counting for short rows, by the templates for others.
//
// Templates sort unsigned keys. A loop kernel makes them of whatever the operand is, so it has any
// type and need not be in memory; the templates give positions, and a second loop kernel fetches
// the elements.
#include "compiler/graph/schedule/own_kernels.h"

namespace fornax::graph {

using loop::ScalarId;
using Indices = std::vector<Expr>;

namespace {

// Whether element a stands before b: less (or greater, when descending); NaN is the greatest.
ScalarId StandsBefore(KernelBuilder& builder,
                      ScalarId a,
                      ScalarId b,
                      bool descending,
                      bool is_float) {
    if (descending) {
        std::swap(a, b);
    }
    const ScalarId less = builder.Map(ScalarFunction::kLess, {a, b});
    if (!is_float) {
        return less;
    }
    const ScalarId a_nan = builder.Map(ScalarFunction::kIsNan, {a});
    const ScalarId b_nan = builder.Map(ScalarFunction::kIsNan, {b});
    const ScalarId only_b =
        builder.Map(ScalarFunction::kAnd, {builder.Map(ScalarFunction::kNot, {a_nan}), b_nan});
    return builder.Map(ScalarFunction::kOr, {less, only_b});
}

// Up to this share of a row is selected; more is sorted.
constexpr int64_t kFew = 8;

// An element's rank is the number of elements that stand before it; then each goes to its place.
void AddSortByRank(const Graph& graph,
                   const std::vector<bool>& realized,
                   const Node& node,
                   PlanBuilder& plan) {
    const auto& sort = std::get<op::Sort>(node.operation);
    const auto axis = static_cast<size_t>(sort.axis);
    const TensorType& type = graph.TypeOf(node.operands[0]);
    // Bools have no order in kernels; as bytes they do.
    const bool is_bool = type.element == ElementType::kBool;
    const TensorType rank_type = {ElementType::kI32, type.shape};
    const BlockId ranks = plan.AddTemporary(node.name, "ranks", rank_type,
                                            "each element's place is counted before any is moved");
    {
        KernelBuilder builder(graph, realized, "sort_rank");
        const Indices index = builder.AddParallel(type.shape);
        const loop::Loop others = builder.NewReductionLoop(type.shape[axis]);
        Indices other = index;
        other[axis] = others.variable;
        const auto element = [&](const Indices& at) {
            const ScalarId value = builder.At(node.operands[0], at);
            return is_bool ? builder.Cast(value, ElementType::kU8) : value;
        };
        const ScalarId mine = element(index), its = element(other);
        const bool is_float = IsFloat(type.element);
        const ScalarId before = StandsBefore(builder, its, mine, sort.descending, is_float);
        const ScalarId behind = StandsBefore(builder, mine, its, sort.descending, is_float);
        const ScalarId earlier =
            builder.Map(ScalarFunction::kLess,
                        {builder.Integer(others.variable), builder.Integer(index[axis])});
        const ScalarId equal_and_earlier = builder.Map(
            ScalarFunction::kAnd, {builder.Map(ScalarFunction::kNot, {behind}), earlier});
        const ScalarId counts = builder.Map(ScalarFunction::kOr, {before, equal_and_earlier});
        const ScalarId rank =
            builder.Reduce(Combine::kSum, {others}, builder.Cast(counts, ElementType::kI32));
        builder.Store(builder.AddBuffer(rank_type), index, rank);
        plan.AddDispatch(node.name, builder, {ranks});
    }
    KernelBuilder builder(graph, realized, "sort_place");
    const Indices index = builder.AddParallel(type.shape);
    const ScalarId rank = builder.LoadFrom(builder.AddBuffer(rank_type), index);
    Indices place = index;
    place[axis] = builder.AsIndex(builder.Cast(rank, ElementType::kI64));
    // Ranks behind the last wanted one are outside of the results, where nothing is stored.
    builder.Store(node.results[0], place, builder.At(node.operands[0], index));
    builder.Store(node.results[1], place, builder.Integer(index[axis]));
    plan.AddDispatch(node.name, builder, {ranks});
}

// An unsigned integer of the element's order, of 32 bits or, for types of 8 bytes, 64.
class KeyBuilder {
  public:
    KeyBuilder(KernelBuilder& builder, ElementType element)
        : builder_(builder),
          element_(element),
          wide_(BytesOf(element) == 8),
          type_(wide_ ? ElementType::kU64 : ElementType::kU32) {}

    ScalarId KeyOf(ScalarId value, bool descending) {
        ScalarId key = IsFloat(element_) ? OfFloat(value) : OfInteger(value);
        return descending ? builder_.Map(ScalarFunction::kNot, {key}) : key;
    }

    // The words of a key, the less significant one first.
    std::vector<ScalarId> WordsOf(ScalarId key) {
        if (!wide_) {
            return {key};
        }
        const ScalarId low = builder_.Map(ScalarFunction::kAnd, {key, Bits(UINT32_MAX)});
        const ScalarId high = builder_.Map(ScalarFunction::kShiftRight, {key, Bits(32)});
        return {builder_.Cast(low, ElementType::kU32), builder_.Cast(high, ElementType::kU32)};
    }

  private:
    ScalarId Bits(uint64_t bits) {
        return builder_.Constant(type_, Scalar::Integer(static_cast<int64_t>(bits)));
    }

    ScalarId OfInteger(ScalarId value) {
        if (!IsSigned(element_)) {
            return builder_.Cast(value, type_);
        }
        const ScalarId extended =
            builder_.Cast(value, wide_ ? ElementType::kI64 : ElementType::kI32);
        return builder_.Map(ScalarFunction::kXor,
                            {builder_.Bitcast(extended, type_), Bits(Sign())});
    }

    // Positive numbers order as their bits do, negative ones the other way round. Zeros are equal,
    // NaNs too and greater than everything; that is decided by bits, since devices may flush
    // denormal numbers.
    ScalarId OfFloat(ScalarId value) {
        const ScalarId number = builder_.Cast(value, wide_ ? ElementType::kF64 : ElementType::kF32);
        const ScalarId bits = builder_.Bitcast(number, type_);
        const ScalarId magnitude = builder_.Map(ScalarFunction::kAnd, {bits, Bits(Sign() - 1)});
        const ScalarId is_zero = builder_.Map(ScalarFunction::kEqual, {magnitude, Bits(0)});
        const ScalarId infinity =
            Bits(wide_ ? uint64_t{0x7ff0'0000'0000'0000} : uint64_t{0x7f80'0000});
        const ScalarId is_nan = builder_.Map(ScalarFunction::kLess, {infinity, magnitude});
        const ScalarId is_positive =
            builder_.Map(ScalarFunction::kOr,
                         {is_zero, builder_.Map(ScalarFunction::kEqual, {magnitude, bits})});
        const ScalarId positive = builder_.Map(ScalarFunction::kOr, {magnitude, Bits(Sign())});
        const ScalarId negative = builder_.Map(ScalarFunction::kNot, {bits});
        const ScalarId key =
            builder_.Map(ScalarFunction::kSelect, {is_positive, positive, negative});
        return builder_.Map(ScalarFunction::kSelect,
                            {is_nan, Bits(UINT64_MAX >> (wide_ ? 0 : 32)), key});
    }

    uint64_t Sign() const { return uint64_t{1} << (wide_ ? 63 : 31); }

    KernelBuilder& builder_;
    const ElementType element_;
    const bool wide_;
    const ElementType type_;
};

// The template for a sort, if there is one for its sizes.
std::optional<TemplateKernel> TemplateOf(const Graph& graph, const Node& node) {
    const auto& sort = std::get<op::Sort>(node.operation);
    const TensorType& type = graph.TypeOf(node.operands[0]);
    const Expr& length = type.shape[static_cast<size_t>(sort.axis)];
    const SizeFacts& sizes = graph.sizes();
    if (IsSortedByComparing(sizes, length)) {
        return std::nullopt;
    }
    Expr rows(1);
    for (size_t i = 0; i < type.shape.rank(); ++i) {
        rows *= i == static_cast<size_t>(sort.axis) ? Expr(1) : type.shape[i];
    }
    const bool wide = BytesOf(type.element) == 8;
    if (!wide && sizes.Hint(sort.count) <= sizes.Hint(length) / kFew) {
        Result<TemplateKernel> kernel =
            TemplateKernel::Make("select_rows", {rows, length, sort.count}, sizes.ranges());
        if (kernel.ok()) {
            return *std::move(kernel);
        }
    }
    Result<TemplateKernel> kernel =
        TemplateKernel::Make("sort_rows", {wide ? 2 : 1, rows, length, sort.count}, sizes.ranges());
    return kernel.ok() ? std::optional(*std::move(kernel)) : std::nullopt;
}

}  // namespace

bool IsSortedByComparing(const SizeFacts& sizes, const Expr& length) {
    constexpr int64_t kShort = 128, kLongest = 1024;
    return sizes.Hint(length) <= kShort && length.Bounds(sizes.ranges()).high <= kLongest;
}

void AddSort(const Graph& graph, std::vector<bool>& realized, const Node& node, PlanBuilder& plan) {
    std::optional<TemplateKernel> kernel;
    if (plan.may_have_templates()) {
        kernel = TemplateOf(graph, node);
    }
    if (!kernel) {
        return AddSortByRank(graph, realized, node, plan);
    }
    const auto& sort = std::get<op::Sort>(node.operation);
    const auto axis = static_cast<size_t>(sort.axis);
    const TensorType& type = graph.TypeOf(node.operands[0]);
    const size_t words = BytesOf(type.element) == 8 ? 2 : 1;
    // Shapes with the axis last: of keys with the words before, of positions.
    Indices key_dims = AxisLast({type.shape.dims().begin(), type.shape.dims().end()}, axis);
    Indices position_dims = key_dims;
    position_dims.back() = sort.count;
    key_dims.insert(key_dims.begin(), static_cast<int64_t>(words));
    const TensorType key_type = {ElementType::kU32, Shape(key_dims)};
    const TensorType position_type = {ElementType::kI32, Shape(position_dims)};
    const BlockId keys = plan.AddTemporary(node.name, "keys", key_type,
                                           "the kernel that sorts takes unsigned integers");
    const BlockId positions = plan.AddTemporary(node.name, "positions", position_type,
                                                "the kernel that sorts gives positions only");
    {
        KernelBuilder builder(graph, realized, "sort_keys");
        const Indices index = builder.AddParallel(type.shape);
        KeyBuilder key(builder, type.element);
        const std::vector<ScalarId> of_element =
            key.WordsOf(key.KeyOf(builder.At(node.operands[0], index), sort.descending));
        const loop::BufferId buffer = builder.AddBuffer(key_type);
        for (size_t word = 0; word < words; ++word) {
            Indices place = AxisLast(index, axis);
            place.insert(place.begin(), static_cast<int64_t>(word));
            builder.Store(buffer, std::move(place), of_element[word]);
        }
        plan.AddDispatch(node.name, builder, {keys});
    }
    std::vector<BlockId> blocks;
    for (const loop::Buffer& buffer : kernel->buffers()) {
        blocks.push_back(
            buffer.name == "keys" ? keys
            : buffer.name == "positions"
                ? positions
                : plan.AddTemporary(node.name, "scratch", buffer.type,
                                    "the kernel that sorts moves its keys there and back"));
    }
    plan.AddTemplate(node.name, *std::move(kernel), std::move(blocks));
    KernelBuilder builder(graph, realized, "sort_fetch");
    const Indices index = builder.AddParallel(graph.ShapeOf(node.results[0]));
    const ScalarId position =
        builder.Cast(builder.LoadFrom(builder.AddBuffer(position_type), AxisLast(index, axis)),
                     ElementType::kI64);
    Indices place = index;
    place[axis] = builder.AsIndex(position);
    builder.Store(node.results[0], index, builder.At(node.operands[0], std::move(place)));
    builder.Store(node.results[1], index, position);
    plan.AddDispatch(node.name, builder, {positions});
}

}  // namespace fornax::graph
