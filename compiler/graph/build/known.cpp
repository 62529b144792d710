// What the builder knows of values: folded constants, and the elements of small integer tensors as
// expressions of sizes.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/build/builder.h"
#include "compiler/graph/interpret/interpreter.h"

namespace fornax::graph {
namespace {

// Greater tensors are not folded: their values are the device's work.
constexpr int64_t kMaxFoldedElements = 64 * 1024;
// Views that repeat or make elements are folded when this small, which is for shapes.
constexpr int64_t kMaxRepeatedElements = 64;
// The greatest tensors whose elements are known as expressions.
constexpr int64_t kMaxKnownElements = 256;
// The most nodes that one TryEvaluate computes.
constexpr size_t kMaxEvaluatedNodes = 4096;

// What one node may take to be folded: a small result may have great intermediate values.
InterpretOptions FoldLimits() {
    InterpretOptions limits;
    limits.max_bytes = uint64_t{64} << 20;
    limits.max_steps = uint64_t{1} << 26;
    return limits;
}

int64_t VolumeOf(const Shape& shape) {
    return shape.Volume().constant().value_or(INT64_MAX);
}

// What can be computed at any time and depends on the operands alone.
bool IsPure(const Operation& operation) {
    return !Is<op::ReadState>(operation) && !Is<op::WriteState>(operation) &&
           !Is<op::HostCall>(operation) && !Is<op::SizeOf>(operation) &&
           !Is<op::RandomBits>(operation);
}

std::vector<int64_t> IntegersOf(const Tensor& tensor) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < tensor.count(); ++i) {
        values.push_back(tensor.At(i).integer);
    }
    return values;
}

// Positions of a tensor of constant shape, in row-major order.
class Positions {
  public:
    explicit Positions(std::vector<int64_t> dims) : dims_(std::move(dims)), at_(dims_.size(), 0) {
        for (const int64_t dim : dims_) {
            left_ *= dim;
        }
    }
    bool done() const { return left_ == 0; }
    std::span<const int64_t> at() const { return at_; }
    void Next() {
        --left_;
        for (size_t i = dims_.size(); i-- > 0;) {
            if (++at_[i] < dims_[i]) {
                return;
            }
            at_[i] = 0;
        }
    }

  private:
    std::vector<int64_t> dims_;
    std::vector<int64_t> at_;
    int64_t left_ = 1;
};

size_t Linear(std::span<const int64_t> dims, std::span<const int64_t> at) {
    int64_t index = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
        index = index * dims[i] + (dims[i] == 1 ? 0 : at[i]);
    }
    return static_cast<size_t>(index);
}

using Elements = std::vector<Expr>;

std::optional<Expr> MapSizes(ScalarFunction function, std::span<const Expr> x, SizeFacts& sizes) {
    const auto at_least = [&](const Expr& e, int64_t low) {
        return e.Bounds(sizes.ranges()).low >= low;
    };
    switch (function) {
        case ScalarFunction::kNeg:
            return -x[0];
        case ScalarFunction::kAdd:
            return x[0] + x[1];
        case ScalarFunction::kSub:
            return x[0] - x[1];
        case ScalarFunction::kMul:
            return x[0] * x[1];
        case ScalarFunction::kMin:
            return Min(x[0], x[1]).Simplify({sizes.ranges(), {}});
        case ScalarFunction::kMax:
            return Max(x[0], x[1]).Simplify({sizes.ranges(), {}});
        case ScalarFunction::kAbs:
            return at_least(x[0], 0) ? std::optional(x[0]) : std::nullopt;
        case ScalarFunction::kDiv:
            if (at_least(x[0], 0) && at_least(x[1], 1)) {
                return FloorDiv(x[0], x[1]).Simplify({sizes.ranges(), {}});
            }
            return std::nullopt;
        case ScalarFunction::kFloorDiv:
            if (at_least(x[1], 1)) {
                return FloorDiv(x[0], x[1]).Simplify({sizes.ranges(), {}});
            }
            return std::nullopt;
        case ScalarFunction::kMod:
            if (at_least(x[1], 1)) {
                return Mod(x[0], x[1]).Simplify({sizes.ranges(), {}});
            }
            return std::nullopt;
        case ScalarFunction::kRem:
            if (at_least(x[0], 0) && at_least(x[1], 1)) {
                return Mod(x[0], x[1]).Simplify({sizes.ranges(), {}});
            }
            return std::nullopt;
        case ScalarFunction::kEqual:
            return Expr(sizes.Equal(x[0], x[1]) ? 1 : 0);
        case ScalarFunction::kLess:
            return Expr(sizes.Less(x[0], x[1]) ? 1 : 0);
        case ScalarFunction::kLessEqual:
            return Expr(sizes.LessEqual(x[0], x[1]) ? 1 : 0);
        case ScalarFunction::kSelect:
            if (x[0].is_constant()) {
                return x[0] == Expr(0) ? x[2] : x[1];
            }
            return std::nullopt;
        default:
            return std::nullopt;
    }
}

// The elements of the result of one primitive whose operands' elements are known.
class ContentsRule {
  public:
    ContentsRule(std::span<const Elements> operands,
                 std::span<const std::vector<int64_t>> operand_dims,
                 std::vector<int64_t> dims,
                 SizeFacts& sizes)
        : x_(operands), x_dims_(operand_dims), dims_(std::move(dims)), sizes_(sizes) {}

    std::optional<Elements> operator()(const op::Map& map) {
        Elements result;
        for (size_t i = 0; i < x_[0].size(); ++i) {
            Elements arguments;
            for (const Elements& operand : x_) {
                arguments.push_back(operand[i]);
            }
            std::optional<Expr> value = MapSizes(map.function, arguments, sizes_);
            if (!value.has_value()) {
                return std::nullopt;
            }
            result.push_back(std::move(*value));
        }
        return result;
    }
    std::optional<Elements> operator()(const op::Cast& cast) {
        // Narrower types would cut what does not fit.
        if (cast.to == ElementType::kI64 || cast.to == ElementType::kI32) {
            return x_[0];
        }
        return std::nullopt;
    }
    std::optional<Elements> operator()(const op::Reshape&) { return x_[0]; }
    std::optional<Elements> operator()(const op::Broadcast&) {
        return ByPosition([&](std::span<const int64_t> at) { return Linear(x_dims_[0], at); });
    }
    std::optional<Elements> operator()(const op::Permute& permute) {
        return ByPosition([&](std::span<const int64_t> at) {
            std::vector<int64_t> from(at.size());
            for (size_t i = 0; i < at.size(); ++i) {
                from[static_cast<size_t>(permute.order[i])] = at[i];
            }
            return Linear(x_dims_[0], from);
        });
    }
    std::optional<Elements> operator()(const op::Slice& slice) {
        std::vector<int64_t> starts;
        for (const Expr& start : slice.starts) {
            if (!start.is_constant()) {
                return std::nullopt;
            }
            starts.push_back(*start.constant());
        }
        return ByPosition([&](std::span<const int64_t> at) {
            std::vector<int64_t> from(at.size());
            for (size_t i = 0; i < at.size(); ++i) {
                from[i] = starts[i] + at[i] * slice.steps[i];
            }
            return Linear(x_dims_[0], from);
        });
    }
    std::optional<Elements> operator()(const op::Concat& concat) {
        const size_t axis = static_cast<size_t>(concat.axis);
        Elements result;
        for (Positions p(dims_); !p.done(); p.Next()) {
            std::vector<int64_t> at(p.at().begin(), p.at().end());
            size_t part = 0;
            while (at[axis] >= x_dims_[part][axis]) {
                at[axis] -= x_dims_[part++][axis];
            }
            result.push_back(x_[part][Linear(x_dims_[part], at)]);
        }
        return result;
    }
    std::optional<Elements> operator()(const op::Gather& gather) {
        Elements result;
        size_t i = 0;
        for (Positions p(dims_); !p.done(); p.Next(), ++i) {
            std::vector<int64_t> from;
            for (size_t d = 0; d < gather.sources.size(); ++d) {
                const int64_t source = gather.sources[d];
                if (source >= 0) {
                    from.push_back(p.at()[static_cast<size_t>(source)]);
                    continue;
                }
                const std::optional<int64_t> index = x_[static_cast<size_t>(-source)][i].constant();
                if (!index.has_value() || *index < 0 || *index >= x_dims_[0][d]) {
                    return std::nullopt;
                }
                from.push_back(*index);
            }
            result.push_back(x_[0][Linear(x_dims_[0], from)]);
        }
        return result;
    }
    std::optional<Elements> operator()(const op::Reduce& reduce) {
        Expr neutral = 0;
        if (reduce.combine == Combine::kProduct) {
            neutral = 1;
        } else if (reduce.combine != Combine::kSum && reduce.combine != Combine::kMin &&
                   reduce.combine != Combine::kMax) {
            return std::nullopt;
        }
        int64_t count = 1;
        for (const int64_t dim : dims_) {
            count *= dim;
        }
        if (x_[0].empty()) {
            return std::nullopt;
        }
        Elements result(static_cast<size_t>(count), neutral);
        std::vector<bool> filled(result.size(), false);
        size_t i = 0;
        for (Positions p(x_dims_[0]); !p.done(); p.Next(), ++i) {
            std::vector<int64_t> at;
            for (size_t d = 0; d < p.at().size(); ++d) {
                if (!std::ranges::binary_search(reduce.axes, static_cast<int64_t>(d))) {
                    at.push_back(p.at()[d]);
                }
            }
            const size_t place = Linear(dims_, at);
            Expr& value = result[place];
            const Expr& next = x_[0][i];
            switch (reduce.combine) {
                case Combine::kSum:
                    value += next;
                    break;
                case Combine::kProduct:
                    value *= next;
                    break;
                case Combine::kMin:
                    value = filled[place] ? Min(value, next) : next;
                    break;
                default:
                    value = filled[place] ? Max(value, next) : next;
                    break;
            }
            filled[place] = true;
        }
        return result;
    }
    std::optional<Elements> operator()(const auto&) { return std::nullopt; }

  private:
    std::optional<Elements> ByPosition(const auto& from) {
        Elements result;
        for (Positions p(dims_); !p.done(); p.Next()) {
            result.push_back(x_[0][from(p.at())]);
        }
        return result;
    }

    std::span<const Elements> x_;
    std::span<const std::vector<int64_t>> x_dims_;
    std::vector<int64_t> dims_;
    SizeFacts& sizes_;
};

}  // namespace

const Tensor* Builder::ConstantOf(Val value) const {
    const Value& entry = graph_[value.id()];
    return entry.kind == ValueKind::kConstant ? &entry.constant : nullptr;
}

// Whether the node can be computed now at a cost that its results are worth; fills in the operands.
bool Builder::IsFoldable(const Node& node, std::vector<Tensor>& operands) const {
    if (!IsPure(node.operation) || Is<op::Loop>(node.operation) || Is<op::If>(node.operation)) {
        return false;
    }
    // Products take quantised weights as they are.
    const auto* composite = std::get_if<op::Composite>(&node.operation);
    if (composite != nullptr && composite->name == "dequantise" &&
        graph_.ShapeOf(node.results[0]).rank() > 1) {
        return false;
    }
    int64_t operand_elements = 0;
    for (const ValueId id : node.operands) {
        const Value& value = graph_[id];
        if (value.kind == ValueKind::kConstant) {
            operands.push_back(value.constant);
        } else if (const auto* view = graph_.ProducerAs<op::Broadcast>(id)) {
            const Node& producer = *graph_.Producer(id);
            const Value& source = graph_[producer.operands[0]];
            if (source.kind != ValueKind::kConstant || VolumeOf(view->shape) > kMaxFoldedElements) {
                return false;
            }
            const Result<std::vector<Tensor>> repeated =
                EvaluateNode(producer.operation, {&source.constant, 1}, {}, {}, FoldLimits());
            if (!repeated.ok()) {
                return false;
            }
            operands.push_back((*repeated)[0]);
        } else {
            return false;
        }
        operand_elements += operands.back().count();
    }
    int64_t result_elements = 0;
    for (const ValueId id : node.results) {
        const int64_t volume = VolumeOf(graph_.ShapeOf(id));
        if (volume > kMaxFoldedElements) {
            return false;
        }
        result_elements += volume;
    }
    if (Is<op::Contract>(node.operation) || Is<op::Composite>(node.operation)) {
        return operand_elements <= 4096 && result_elements <= 4096;
    }
    return operand_elements <= kMaxFoldedElements &&
           result_elements <= std::max(kMaxRepeatedElements, 2 * operand_elements);
}

void Builder::Fold(NodeId id) {
    const Node& node = graph_[id];
    if (node.results.empty()) {
        return;
    }
    std::vector<Tensor> operands;
    if (!IsFoldable(node, operands)) {
        return;
    }
    Result<std::vector<Tensor>> results =
        EvaluateNode(node.operation, operands, node.bodies, {}, FoldLimits());
    if (!results.ok()) {
        return;
    }
    const std::vector<ValueId> ids = node.results;
    for (size_t i = 0; i < ids.size(); ++i) {
        graph_.MakeConstant(ids[i], std::move((*results)[i]));
    }
}

std::optional<std::vector<Expr>> Builder::ContentsOf(const Node& node) {
    const TensorType& type = graph_.TypeOf(node.results[0]);
    if ((!IsInteger(type.element) && type.element != ElementType::kBool) ||
        VolumeOf(type.shape) > kMaxKnownElements || VolumeOf(type.shape) == 0) {
        return std::nullopt;
    }
    std::vector<Elements> operands;
    std::vector<std::vector<int64_t>> dims;
    bool symbolic = false;
    for (const ValueId id : node.operands) {
        std::optional<Elements> known = KnownIntegers({*this, id});
        if (!known.has_value()) {
            return std::nullopt;
        }
        symbolic = symbolic || contents_.contains(id);
        operands.push_back(std::move(*known));
        dims.push_back(*graph_.ShapeOf(id).Constants());
    }
    if (!symbolic) {
        return std::nullopt;
    }
    ContentsRule rule(operands, dims, *type.shape.Constants(), sizes());
    return std::visit(rule, node.operation);
}

std::optional<std::vector<Expr>> Builder::KnownIntegers(Val value) {
    const auto found = contents_.find(value.id());
    if (found != contents_.end()) {
        return found->second;
    }
    const Tensor* constant = ConstantOf(value);
    if (constant == nullptr || constant->count() > kMaxKnownElements ||
        (!IsInteger(constant->element) && constant->element != ElementType::kBool)) {
        return std::nullopt;
    }
    const std::vector<int64_t> integers = IntegersOf(*constant);
    return Elements(integers.begin(), integers.end());
}

std::optional<Tensor> Builder::TryEvaluate(Val value) {
    // The nodes that the value depends on; the graph's order is their order.
    std::set<ValueId> needed;
    std::vector<ValueId> open = {value.id()};
    std::set<NodeId> nodes;
    std::vector<Shape> shapes;
    while (!open.empty()) {
        const ValueId id = open.back();
        open.pop_back();
        if (evaluated_.contains(id) || !needed.insert(id).second) {
            continue;
        }
        const Value& entry = graph_[id];
        if (entry.kind == ValueKind::kConstant) {
            continue;
        }
        if (entry.kind == ValueKind::kInput) {
            std::optional<Tensor> given = input_value_ ? input_value_(id) : std::nullopt;
            if (!given.has_value()) {
                return std::nullopt;
            }
            evaluated_[id] = std::move(*given);
            continue;
        }
        const Node& node = graph_[entry.producer];
        if (!IsPure(node.operation) && !Is<op::SizeOf>(node.operation)) {
            return std::nullopt;
        }
        for (const ValueId result : node.results) {
            const Shape shape = graph_.ShapeOf(result);
            int64_t volume = 1;
            for (const Expr& dim : shape.dims()) {
                volume *= std::clamp<int64_t>(sizes().Hint(dim), 0, kMaxFoldedElements + 1);
                if (volume > kMaxFoldedElements) {
                    return std::nullopt;
                }
            }
            shapes.push_back(shape);
        }
        nodes.insert(entry.producer);
        if (nodes.size() > kMaxEvaluatedNodes) {
            return std::nullopt;
        }
        open.insert(open.end(), node.operands.begin(), node.operands.end());
    }
    // The symbols of the shapes are fixed; an operation that has others is not evaluated.
    Bindings bindings;
    for (const Shape& shape : shapes) {
        for (const Expr& dim : shape.dims()) {
            for (const Symbol& symbol : dim.Symbols()) {
                bindings[symbol] = sizes().Fix(symbol);
            }
        }
    }
    const auto tensor_of = [&](ValueId id) -> const Tensor& {
        return graph_[id].kind == ValueKind::kConstant ? graph_[id].constant : evaluated_.at(id);
    };
    for (const NodeId id : nodes) {
        const Node& node = graph_[id];
        if (const auto* size = std::get_if<op::SizeOf>(&node.operation)) {
            const int64_t fixed = sizes().Fix(size->value);
            evaluated_[node.results[0]] = Tensor::FromIntegers({}, {&fixed, 1});
            continue;
        }
        std::vector<Tensor> operands;
        for (const ValueId operand : node.operands) {
            operands.push_back(tensor_of(operand));
        }
        Result<std::vector<Tensor>> results =
            EvaluateNode(node.operation, operands, node.bodies, bindings, FoldLimits());
        if (!results.ok()) {
            return std::nullopt;
        }
        for (size_t i = 0; i < node.results.size(); ++i) {
            evaluated_[node.results[i]] = std::move((*results)[i]);
        }
    }
    return tensor_of(value.id());
}

std::vector<Expr> Builder::RequireSizes(Val value, std::string_view what) {
    if (std::optional<std::vector<Expr>> known = KnownIntegers(value)) {
        return *known;
    }
    const std::vector<int64_t> integers = RequireIntegers(value, what);
    return {integers.begin(), integers.end()};
}

std::vector<int64_t> Builder::RequireIntegers(Val value, std::string_view what) {
    const std::optional<Tensor> tensor = TryEvaluate(value);
    if (!tensor.has_value()) {
        throw DependsOnData(fmt::format("{} depends on the data", what));
    }
    if (!IsInteger(tensor->element) && tensor->element != ElementType::kBool) {
        FailInvalid(fmt::format("{} is of type {}, not integer", what, Name(tensor->element)));
    }
    return IntegersOf(*tensor);
}

std::vector<double> Builder::RequireNumbers(Val value, std::string_view what) {
    const std::optional<Tensor> tensor = TryEvaluate(value);
    if (!tensor.has_value()) {
        throw DependsOnData(fmt::format("{} depends on the data", what));
    }
    if (tensor->element == ElementType::kString) {
        FailInvalid(fmt::format("{} is text, not numbers", what));
    }
    std::vector<double> numbers;
    for (int64_t i = 0; i < tensor->count(); ++i) {
        numbers.push_back(tensor->At(i).ToDouble(tensor->element));
    }
    return numbers;
}

int64_t Builder::RequireInteger(Val value, std::string_view what) {
    const std::vector<int64_t> values = RequireIntegers(value, what);
    if (values.size() != 1) {
        FailInvalid(fmt::format("{} has {} elements, not 1", what, values.size()));
    }
    return values[0];
}

}  // namespace fornax::graph
