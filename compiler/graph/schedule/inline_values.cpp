// What each primitive becomes inside of a kernel: KernelBuilder::At.
#include <algorithm>
#include <array>
#include <cassert>

#include "compiler/graph/schedule/kernel_builder.h"

namespace fornax::graph {

namespace {

// 0, or what it is rounded to in a type that has none (f8e8m0).
Scalar ZeroOf(ElementType type) {
    std::array<uint8_t, sizeof(uint64_t)> bytes = {};
    WriteElement(type, IsFloat(type) ? Scalar::Float(0) : Scalar::Integer(0), bytes.data());
    return ReadElement(type, bytes.data());
}

}  // namespace

using loop::ScalarId;
using Indices = std::vector<Expr>;

// The scalar of a node's result at an index. One function a primitive that can be inlined.
class ValueInliner {
  public:
    ValueInliner(KernelBuilder& builder, const Node& node, const TensorType& type, Indices index)
        : builder_(builder), node_(node), type_(type), index_(std::move(index)) {}

    ScalarId operator()(const op::Map& map) {
        std::vector<ScalarId> arguments;
        for (size_t i = 0; i < node_.operands.size(); ++i) {
            arguments.push_back(Operand(i, index_));
        }
        return builder_.Map(map.function, std::move(arguments));
    }

    ScalarId operator()(const op::Cast& cast) {
        const ScalarId argument = Operand(0, index_);
        return builder_.Add(cast.to, loop::Cast{argument, cast.overflow, cast.rounding});
    }

    ScalarId operator()(const op::Bitcast& cast) {
        const ScalarId argument = Operand(0, index_);
        return builder_.Add(cast.to, loop::Bitcast{argument});
    }

    ScalarId operator()(const op::Reduce& reduce) {
        Indices index = index_;
        std::vector<loop::Loop> loops;
        for (const int64_t axis : reduce.axes) {
            const Expr& extent = OperandShape(0)[static_cast<size_t>(axis)];
            index.insert(index.begin() + axis, ReductionIndex(extent, loops));
        }
        const ScalarId body = Operand(0, std::move(index));
        return loops.empty() ? body : builder_.Reduce(reduce.combine, std::move(loops), body);
    }

    ScalarId operator()(const op::ArgReduce& reduce) {
        const Expr& extent = OperandShape(0)[static_cast<size_t>(reduce.axis)];
        const loop::Loop loop = builder_.NewReductionLoop(extent);
        Indices index = index_;
        index.insert(index.begin() + reduce.axis, loop.variable);
        const ScalarId body = Operand(0, std::move(index));
        return builder_.Add(ElementType::kI64,
                            loop::ArgReduce{reduce.combine, reduce.last, loop, body});
    }

    ScalarId operator()(const op::Contract& contract) {
        std::map<char, Expr> places;
        for (size_t i = 0; i < contract.result.size(); ++i) {
            places.emplace(contract.result[i], index_[i]);
        }
        std::vector<loop::Loop> loops;
        const std::string* labels[] = {&contract.a, &contract.b};
        for (size_t operand = 0; operand < 2; ++operand) {
            for (size_t axis = 0; axis < labels[operand]->size(); ++axis) {
                const char label = (*labels[operand])[axis];
                if (!places.contains(label)) {
                    places.emplace(label, ReductionIndex(OperandShape(operand)[axis], loops));
                }
            }
        }
        // Narrow floats are multiplied and added in f32 and rounded once, so that their kernels are
        // those of f32 with casts.
        const bool is_narrow = IsFloat(contract.accumulate) && BytesOf(contract.accumulate) < 4;
        const ElementType wide = is_narrow ? ElementType::kF32 : contract.accumulate;
        ScalarId factors[2];
        for (size_t operand = 0; operand < 2; ++operand) {
            Indices index;
            for (const char label : *labels[operand]) {
                index.push_back(places.at(label));
            }
            // A wider operand is an element of the product's type first.
            const ScalarId element =
                builder_.Cast(Operand(operand, std::move(index)), contract.accumulate);
            factors[operand] = builder_.Cast(element, wide);
        }
        ScalarId product = builder_.Map(ScalarFunction::kMul, {factors[0], factors[1]});
        if (!loops.empty()) {
            product = builder_.Reduce(Combine::kSum, std::move(loops), product);
        }
        return builder_.Cast(product, contract.accumulate);
    }

    ScalarId operator()(const op::Reshape&) {
        return Operand(0, ReshapedIndex(index_, type_.shape, OperandShape(0)));
    }

    ScalarId operator()(const op::Permute& permute) {
        Indices index(index_.size());
        for (size_t i = 0; i < index_.size(); ++i) {
            index[static_cast<size_t>(permute.order[i])] = index_[i];
        }
        return Operand(0, std::move(index));
    }

    ScalarId operator()(const op::Broadcast&) {
        Indices index = index_;
        for (size_t i = 0; i < index.size(); ++i) {
            if (OperandShape(0)[i] == Expr(1)) {
                index[i] = 0;
            }
        }
        return Operand(0, std::move(index));
    }

    ScalarId operator()(const op::Slice& slice) {
        Indices index;
        for (size_t i = 0; i < index_.size(); ++i) {
            index.push_back(slice.starts[i] + index_[i] * slice.steps[i]);
        }
        return Operand(0, std::move(index));
    }

    ScalarId operator()(const op::Pad& pad) {
        Indices index;
        ScalarId inside;
        const auto require = [&](ScalarId condition) {
            if (builder_.IsTrue(condition)) {
                return;
            }
            inside = inside.valid() ? builder_.Map(ScalarFunction::kAnd, {inside, condition})
                                    : condition;
        };
        bool interior = false;
        for (size_t i = 0; i < index_.size(); ++i) {
            const Expr place = index_[i] - pad.low[i];
            const int64_t distance = pad.interior[i] + 1;
            if (distance == 1) {
                index.push_back(place);
                continue;
            }
            interior = true;
            index.push_back(FloorDiv(place, distance));
            require(builder_.Map(ScalarFunction::kEqual,
                                 {builder_.Integer(Mod(place, distance)), builder_.Integer(0)}));
        }
        const ScalarId surrounding = Operand(1, {});
        const ValueId operand = node_.operands[0];
        // A load checks its index by itself.
        if (!interior && builder_.realized_[operand.value()]) {
            return builder_.LoadFrom(operand, std::move(index), surrounding);
        }
        for (size_t i = 0; i < index.size(); ++i) {
            if (pad.low[i] != Expr(0) || pad.high[i] != Expr(0)) {
                require(builder_.InRange(index[i], OperandShape(0)[i]));
            }
        }
        const ScalarId value = Operand(0, std::move(index));
        return inside.valid() ? builder_.Map(ScalarFunction::kSelect, {inside, value, surrounding})
                              : value;
    }

    ScalarId operator()(const op::Window& window) {
        Indices index(index_.begin(), index_.end() - 1);
        Expr& place = index[static_cast<size_t>(window.axis)];
        place = place * window.stride + index_.back() * window.dilation;
        return Operand(0, std::move(index));
    }

    ScalarId operator()(const op::Concat& concat) {
        // The last operand whose beginning the index has reached; each sees its own index.
        const auto axis = static_cast<size_t>(concat.axis);
        Expr begin;
        ScalarId value;
        for (size_t i = 0; i < node_.operands.size(); ++i) {
            Indices index = index_;
            index[axis] -= begin;
            const ScalarId part = Operand(i, std::move(index));
            if (!value.valid()) {
                value = part;
            } else {
                const ScalarId before = builder_.InRange(index_[axis], begin);
                value = builder_.Map(ScalarFunction::kSelect, {before, value, part});
            }
            begin += OperandShape(i)[axis];
        }
        return value;
    }

    ScalarId operator()(const op::Gather& gather) {
        Indices index;
        for (const int64_t source : gather.sources) {
            if (source >= 0) {
                index.push_back(index_[static_cast<size_t>(source)]);
            } else {
                const ScalarId place = Operand(static_cast<size_t>(-source), index_);
                index.push_back(builder_.AsIndex(builder_.Cast(place, ElementType::kI64)));
            }
        }
        const ValueId data = node_.operands[0];
        if (builder_.realized_[data.value()]) {
            return builder_.LoadFrom(data, std::move(index));  // which gives 0 outside
        }
        ScalarId inside;
        for (size_t i = 0; i < index.size(); ++i) {
            const ScalarId here = builder_.InRange(index[i], OperandShape(0)[i]);
            if (!builder_.IsTrue(here)) {
                inside = inside.valid() ? builder_.Map(ScalarFunction::kAnd, {inside, here}) : here;
            }
        }
        const ScalarId value = Operand(0, std::move(index));
        if (!inside.valid()) {
            return value;
        }
        return builder_.Map(
            ScalarFunction::kSelect,
            {inside, value, builder_.Constant(type_.element, ZeroOf(type_.element))});
    }

    ScalarId operator()(const op::Iota& iota) {
        return builder_.Cast(builder_.Integer(index_[static_cast<size_t>(iota.axis)]),
                             iota.element);
    }

    ScalarId operator()(const op::SizeOf& size) { return builder_.Integer(size.value); }

    ScalarId operator()(const op::RandomBits&) { return Philox(); }

    // Everything else is realized.
    ScalarId operator()(const auto&) {
        assert(false);
        return {};
    }

  private:
    const Shape& OperandShape(size_t i) const { return builder_.graph_.ShapeOf(node_.operands[i]); }
    ScalarId Operand(size_t i, Indices index) {
        return builder_.At(node_.operands[i], std::move(index));
    }
    Expr ReductionIndex(const Expr& extent, std::vector<loop::Loop>& loops) {
        if (extent == Expr(1)) {
            return 0;
        }
        loops.push_back(builder_.ReductionLoop(extent, loops));
        return loops.back().variable;
    }

    // The index in `to` of the element that has `index` in `from`. Dimensions are matched group by
    // group, so that [a, b*c] and [a, b, c] share `a` without a division.
    Indices ReshapedIndex(const Indices& index, const Shape& from, const Shape& to) {
        Indices result;
        size_t i = 0, j = 0;
        while (i < from.rank() || j < to.rank()) {
            const size_t i_begin = i, j_begin = j;
            Expr from_volume(1), to_volume(1);
            if (i < from.rank()) {
                from_volume = from[i++];
            }
            if (j < to.rank()) {
                to_volume = to[j++];
            }
            while (from_volume != to_volume && (i < from.rank() || j < to.rank())) {
                const SizeFacts& sizes = builder_.graph_.sizes();
                const bool from_is_less = sizes.Hint(from_volume) < sizes.Hint(to_volume);
                if ((from_is_less && i < from.rank()) || j == to.rank()) {
                    from_volume *= from[i++];
                } else {
                    to_volume *= to[j++];
                }
            }
            AppendGroup(index, from, i_begin, i, to, j_begin, j, result);
        }
        return result;
    }

    void AppendGroup(const Indices& index,
                     const Shape& from,
                     size_t i_begin,
                     size_t i_end,
                     const Shape& to,
                     size_t j_begin,
                     size_t j_end,
                     Indices& result) {
        Expr linear;
        for (size_t i = i_begin; i < i_end; ++i) {
            linear = linear * from[i] + index[i];
        }
        linear = builder_.Simplified(linear);
        Indices group;
        Expr stride(1);
        for (size_t j = j_end; j-- > j_begin;) {
            const bool outermost = j == j_begin;
            const Expr quotient = builder_.Simplified(FloorDiv(linear, stride));
            if (to[j] == Expr(1)) {
                group.emplace_back(0);
            } else {
                group.push_back(outermost ? quotient : builder_.Simplified(Mod(quotient, to[j])));
            }
            stride *= to[j];
        }
        result.insert(result.end(), group.rbegin(), group.rend());
    }

    // Philox 4x32-10 (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3"): element n
    // is word n mod 4 of the block whose counter is n / 4.
    ScalarId Philox() {
        constexpr ElementType kU32 = ElementType::kU32, kU64 = ElementType::kU64;
        const auto word = [&](int64_t value) {
            return builder_.Constant(kU32, Scalar::Integer(value));
        };
        const auto apply = [&](ScalarFunction function, ScalarId a, ScalarId b) {
            return builder_.Map(function, {a, b});
        };
        Expr number;
        for (size_t i = 0; i < index_.size(); ++i) {
            number = number * type_.shape[i] + index_[i];
        }
        const Expr block = FloorDiv(number, 4);
        ScalarId counter[4] = {builder_.Cast(builder_.Integer(block), kU32), word(0), word(0),
                               word(0)};
        ScalarId key[2] = {Operand(0, {Expr(0)}), Operand(0, {Expr(1)})};
        const int64_t multipliers[2] = {0xD2511F53, 0xCD9E8D57};
        const int64_t increments[2] = {0x9E3779B9, 0xBB67AE85};
        const ScalarId half = builder_.Constant(kU64, Scalar::Integer(32));
        for (int round = 0; round < 10; ++round) {
            ScalarId high[2], low[2];
            for (int i = 0; i < 2; ++i) {
                const ScalarId product =
                    apply(ScalarFunction::kMul, builder_.Cast(counter[2 * i], kU64),
                          builder_.Constant(kU64, Scalar::Integer(multipliers[i])));
                high[i] = builder_.Cast(apply(ScalarFunction::kShiftRight, product, half), kU32);
                low[i] = builder_.Cast(product, kU32);
            }
            const ScalarId next[4] = {
                apply(ScalarFunction::kXor, apply(ScalarFunction::kXor, high[1], counter[1]),
                      key[0]),
                low[1],
                apply(ScalarFunction::kXor, apply(ScalarFunction::kXor, high[0], counter[3]),
                      key[1]),
                low[0]};
            std::copy(next, next + 4, counter);
            for (int i = 0; i < 2; ++i) {
                key[i] = apply(ScalarFunction::kAdd, key[i], word(increments[i]));
            }
        }
        const ScalarId place = builder_.Integer(Mod(number, 4));
        ScalarId result = counter[3];
        for (int i = 2; i >= 0; --i) {
            const ScalarId here = apply(ScalarFunction::kEqual, place, builder_.Integer(i));
            result = builder_.Map(ScalarFunction::kSelect, {here, counter[i], result});
        }
        return result;
    }

    KernelBuilder& builder_;
    const Node& node_;
    const TensorType& type_;
    Indices index_;
};

namespace {

// The one value of a constant whose elements are all the same. More floats than the folding of
// constants makes of one number are loaded even so: gains of 1 and offsets of 0 are weights, and a
// kernel that held them would be another one once the network is trained further.
const uint8_t* Uniform(const Tensor& tensor) {
    constexpr int64_t kMaxElements = 4096, kMaxFloats = 64;
    const size_t bytes = BytesOf(tensor.element);
    const int64_t count = tensor.element == ElementType::kString ? 0 : tensor.count();
    if (count == 0 || count > (IsFloat(tensor.element) ? kMaxFloats : kMaxElements)) {
        return nullptr;
    }
    const uint8_t* data = tensor.data->data();
    for (int64_t i = 1; i < count; ++i) {
        if (!std::equal(data, data + bytes, data + static_cast<size_t>(i) * bytes)) {
            return nullptr;
        }
    }
    return data;
}

// A small integer constant as an expression of its index, if it is linear: 0, 1, 2, ... for one.
std::optional<Expr> Linear(const Tensor& tensor, const Indices& index) {
    constexpr int64_t kMaxElements = 4096;
    const int64_t count = tensor.element == ElementType::kI64 ? tensor.count() : 0;
    if (count == 0 || count > kMaxElements) {
        return std::nullopt;
    }
    const size_t rank = tensor.dims.size();
    const int64_t first = tensor.At(0).integer;
    std::vector<int64_t> steps(rank);
    int64_t stride = 1;
    for (size_t d = rank; d-- > 0;) {
        if (tensor.dims[d] > 1 &&
            __builtin_sub_overflow(tensor.At(stride).integer, first, &steps[d])) {
            return std::nullopt;
        }
        stride *= tensor.dims[d];
    }
    for (int64_t i = 0; i < count; ++i) {
        int64_t value = first, rest = i;
        for (size_t d = rank; d-- > 0; rest /= tensor.dims[d]) {
            int64_t part = 0;
            if (__builtin_mul_overflow(steps[d], rest % tensor.dims[d], &part) ||
                __builtin_add_overflow(value, part, &value)) {
                return std::nullopt;
            }
        }
        if (value != tensor.At(i).integer) {
            return std::nullopt;
        }
    }
    Expr expr(first);
    for (size_t d = 0; d < rank; ++d) {
        expr += index[d] * steps[d];
    }
    return expr;
}

}  // namespace

ScalarId KernelBuilder::At(ValueId value, std::vector<Expr> index) {
    assert(index.size() == graph_.ShapeOf(value).rank());
    for (Expr& expr : index) {
        expr = Simplified(expr);
    }
    const Value& source = graph_[value];
    if (source.kind == ValueKind::kConstant) {
        if (const uint8_t* element = Uniform(source.constant)) {
            return Constant(source.type.element, ReadElement(source.type.element, element));
        }
        if (const std::optional<Expr> value = Linear(source.constant, index)) {
            return Integer(*value);
        }
    }
    if (realized_[value.value()]) {
        return LoadFrom(value, std::move(index));
    }
    Key key{value.value(), index};
    const auto found = scalars_.find(key);
    if (found != scalars_.end()) {
        return found->second;
    }
    if (size() > most_scalars_) {
        return Constant(source.type.element, ZeroOf(source.type.element));
    }
    ScalarId scalar;
    if (const auto given = sources_.find(value.value()); given != sources_.end()) {
        scalar = given->second(index);
    } else {
        const Node& node = *graph_.Producer(value);
        ValueInliner inliner(*this, node, source.type, std::move(index));
        scalar = std::visit(inliner, node.operation);
    }
    scalars_.emplace(std::move(key), scalar);
    return scalar;
}

}  // namespace fornax::graph
