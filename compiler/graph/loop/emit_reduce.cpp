// Loops over points, and reductions: in one invocation, or shared by those of a workgroup.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/loop/emitter.h"

namespace fornax::graph::loop {

using spv::Op;

namespace {

// Reductions of so few points are written out, if that is not too much code.
constexpr int64_t kMaxUnrolledPoints = 16;
constexpr int64_t kMaxUnrolledTaps = 64;  // of a window
constexpr int64_t kMaxUnrolledScalars = 192;

// Accumulators of a reduction over the lanes, if all have as many points.
constexpr size_t kWays = 4;

// Scalars of a point, up to which several are written out.
constexpr int64_t kMaxScalarsOfSeveral = 32;

constexpr int64_t kMinLanePoints = 16;  // of the innermost loop, else all loops are one

}  // namespace

// Extents that may be negative have no points.
Id Emitter::EmitExtent(const Expr& extent) {
    const Expr simple = Simplified(extent);
    if (UsesScalar(simple)) {
        const Id wide = EmitWideExpr(simple);
        const Id type = b_.TypeOf(wide), zero = b_.Constant(type, 0);
        const Id most = b_.Constant(type, INT32_MAX);
        const Id low = b_.Select(Test(Op::OpSLessThan, wide, zero), zero, wide);
        const Id bounded = b_.Select(Test(Op::OpSLessThan, most, low), most, low);
        return b_.Op(Op::OpUConvert, b_.U32(), {bounded});
    }
    CheckNarrow(simple);
    const Id value = EmitExpr(simple);
    if (domain_.IsNotNegative(simple)) {
        return value;
    }
    return b_.Select(Test(Op::OpSLessThan, value, U(0)), U(0), value);
}

Ids Emitter::ForNest(const Nest& nest,
                     size_t first,
                     std::span<const Id> carried,
                     const PointBody& body) {
    if (first == nest.loops.size()) {
        return body(carried);
    }
    const Loop& loop = nest.loops[first];
    return b_.For(U(0), EmitExtent(loop.extent), U(1), carried,
                  [&](Id index, std::span<const Id> values) {
                      OpenScope();
                      Bind(loop.variable, loop.extent, index);
                      Ids next = ForNest(nest, first + 1, values, body);
                      Unbind(loop.variable);
                      CloseScope();
                      return next;
                  });
}

size_t Emitter::SeveralOf(const std::vector<bool>& needed, VariableSet variables) const {
    int64_t count = 0;
    for (size_t i = 0; i < needed.size(); ++i) {
        if (needed[i] && (scope_.free[i] & variables) != 0 &&
            (!LoopsOf(kernel_.scalars[i]).empty() || ++count > kMaxScalarsOfSeveral)) {
            return 1;
        }
    }
    return kWays;
}

size_t Emitter::WaysOf(std::span<const Loop> loops) const {
    int64_t points = 1;
    for (const Loop& loop : loops) {
        points *= loop.extent.constant().value_or(0);
    }
    return points >= static_cast<int64_t>(local_size_ * kWays) ? kWays : 1;
}

Ids Emitter::ForLanes(const Nest& nest,
                      std::span<const Id> carried,
                      const PointBody& body,
                      size_t ways,
                      size_t several) {
    if (nest.loops.empty()) {  // one point
        return b_.If(
            Test(Op::OpIEqual, lane_, U(0)), [&] { return body(carried); },
            [&] { return Ids(carried.begin(), carried.end()); });
    }
    const size_t count = nest.loops.size();
    const std::optional<int64_t> innermost = nest.loops.back().extent.constant();
    const bool join = count > 1 && innermost && *innermost < kMinLanePoints;
    Nest outer;
    std::vector<Loop> inner = nest.loops;
    if (!join) {
        outer.loops.assign(nest.loops.begin(), nest.loops.end() - 1);
        inner.erase(inner.begin(), inner.end() - 1);
    }
    Expr points(1);
    for (const Loop& loop : inner) {
        points *= loop.extent;
    }
    const size_t each = carried.size() / ways;
    // The carried values after one point, which takes those of a way.
    const auto at = [&](Id point, std::span<const Id> values, size_t way) {
        OpenScope();
        BindFromIndex(inner, point);
        Ids next(values.begin(), values.end());
        const Ids one = body(values.subspan(way * each, each));
        std::copy(one.begin(), one.end(), next.begin() + static_cast<std::ptrdiff_t>(way * each));
        for (const Loop& loop : inner) {
            Unbind(loop.variable);
        }
        CloseScope();
        return next;
    };
    return ForNest(outer, 0, carried, [&](std::span<const Id> values) -> Ids {
        const Id end = EmitExtent(points);
        const auto guarded = [&](Id point, std::span<const Id> inside) {
            return b_.If(
                b_.ULess(point, end), [&] { return at(point, inside, 0); },
                [&] { return Ids(inside.begin(), inside.end()); });
        };
        const std::optional<int64_t> constant = points.constant();
        if (constant && *constant <= local_size_) {
            return *constant == local_size_ ? at(lane_, values, 0) : guarded(lane_, values);
        }
        if (!constant || several <= 1) {
            return b_.For(U(0), end, U(local_size_), values,
                          [&](Id base, std::span<const Id> inside) {
                              return guarded(b_.Add(base, lane_), inside);
                          });
        }
        // Several points at once, then one by one, then those that not all invocations have. A
        // few are no loop.
        const int64_t size = local_size_, whole = std::max<int64_t>(*constant, 0) / size;
        const auto at_once = static_cast<int64_t>(several);
        int64_t done = 0;
        Ids next(values.begin(), values.end());
        if (whole > static_cast<int64_t>(kWays)) {
            done = whole / at_once * at_once;
            next = b_.For(
                U(0), U(static_cast<uint32_t>(done * size)),
                U(static_cast<uint32_t>(at_once * size)), next,
                [&](Id base, std::span<const Id> inside) {
                    Ids values_inside(inside.begin(), inside.end());
                    for (int64_t i = 0; i < at_once; ++i) {
                        const Id point =
                            b_.Add(b_.Add(base, lane_), U(static_cast<uint32_t>(i * size)));
                        values_inside = at(point, values_inside, static_cast<size_t>(i) % ways);
                    }
                    return values_inside;
                },
                spirv::ModuleBuilder::Unroll::kDont);
        }
        for (int64_t i = done; i < whole; ++i) {
            const Id point = b_.Add(lane_, U(static_cast<uint32_t>(i * size)));
            next = at(point, next, static_cast<size_t>(i - done) % ways);
        }
        return *constant % size == 0
                   ? next
                   : guarded(b_.Add(lane_, U(static_cast<uint32_t>(whole * size))), next);
    });
}

bool Emitter::ShouldUnroll(std::span<const Loop> loops, const std::vector<bool>& needed) const {
    const int64_t most = staged_.empty() ? kMaxUnrolledPoints : kMaxUnrolledTaps;
    int64_t points = 1;
    VariableSet variables = 0;
    for (const Loop& loop : loops) {
        const std::optional<int64_t> extent = loop.extent.constant();
        if (!extent || *extent > most) {
            return false;
        }
        points *= std::max<int64_t>(*extent, 0);
        variables |= VariableSet{1} << *scope_.Find(loop.variable);
    }
    int64_t scalars = 0;
    for (size_t i = 0; i < needed.size(); ++i) {
        if (needed[i] && (scope_.free[i] & variables) != 0) {
            const bool nested = !LoopsOf(kernel_.scalars[i]).empty();
            scalars += nested ? kMaxUnrolledScalars : 1;
        }
    }
    return points <= most && points * scalars <= kMaxUnrolledScalars;
}

Ids Emitter::Unrolled(std::span<const Loop> loops,
                      std::span<const Id> carried,
                      const PointBody& body) {
    if (loops.empty()) {
        OpenScope();
        Ids next = body(carried);
        CloseScope();
        return next;
    }
    const Symbol& variable = loops[0].variable;
    const Range saved = domain_.ranges.at(variable);
    Ids values(carried.begin(), carried.end());
    for (int64_t i = 0; i < loops[0].extent.constant(); ++i) {
        domain_.ranges[variable] = {i, i};
        values = Unrolled(loops.subspan(1), values, body);
    }
    domain_.ranges[variable] = saved;
    return values;
}

Ids Emitter::Reduction(std::span<const Loop> loops,
                       std::span<const ScalarId> bodies,
                       std::span<const Id> initial,
                       bool cooperative,
                       const PointBody& body,
                       size_t ways) {
    VariableSet variables = 0;
    for (const Loop& loop : loops) {
        variables |= VariableSet{1} << *scope_.Find(loop.variable);
    }
    if ((variables & bound_variables_) != 0) {
        Reject("a reduction is inside of another one with the same variable");
        return {initial.begin(), initial.end()};
    }
    std::vector<bool> needed = Needed(bodies);
    const VariableSet saved_variables = bound_variables_;
    const bool saved_uniform = uniform_;
    uniform_ = false;
    Ids result;
    if (!cooperative && ShouldUnroll(loops, needed)) {
        Hoist(needed);
        bound_variables_ |= variables;
        result = Unrolled(loops, initial, body);
    } else {
        const size_t merges = merges_.size();
        std::vector<bool> varying = needed;
        for (size_t i = 0; i < varying.size(); ++i) {
            varying[i] = varying[i] && (scope_.free[i] & variables) != 0;
        }
        const Nest nest = Collapse(loops, UsesIn(varying, {}));
        Hoist(needed);
        bound_variables_ |= variables;
        const size_t several = SeveralOf(varying, variables);
        const size_t at_once = several > 1 && ways > 1 ? ways : several;
        result = cooperative ? ForLanes(nest, initial, body, ways, at_once)
                             : ForNest(nest, 0, initial, body);
        merges_.resize(
            merges, merges_.empty() ? Merge{Symbol("$"), Symbol("$"), Symbol("$"), 1} : merges_[0]);
    }
    bound_variables_ = saved_variables;
    uniform_ = saved_uniform;
    return result;
}

bool Emitter::IsOfNumbers(ScalarId reduce) const {
    return std::find(softmax_.maxima.begin(), softmax_.maxima.end(), reduce) !=
           softmax_.maxima.end();
}

Id Emitter::Combined(ScalarId reduce, Id a, Id b) {
    if (IsOfNumbers(reduce)) {
        return b_.Select(Test(Op::OpFOrdGreaterThan, b, a), b, a);
    }
    return functions_.CombineValues(std::get<Reduce>(kernel_[reduce].value).combine,
                                    kernel_[reduce].type, a, b);
}

Id Emitter::Compute(const ScalarNode& node, const Reduce& reduce) {
    const ScalarId id = IdOf(node);
    const bool cooperative = uniform_;
    const size_t ways = cooperative ? WaysOf(reduce.loops) : 1;
    const Ids initial(ways, ConstantOf(node.type, NeutralElement(reduce.combine, node.type)));
    const Ids results = Reduction(
        reduce.loops, {&reduce.body, 1}, initial, cooperative,
        [&](std::span<const Id> carried) -> Ids {
            return {Combined(id, carried[0], Value(reduce.body))};
        },
        ways);
    Id result = results[0];
    for (size_t way = 1; way < ways; ++way) {
        result = Combined(id, result, results[way]);
    }
    const Id whole = cooperative
                         ? AcrossInvocations(reduce.combine, node.type, result, !IsOfNumbers(id))
                         : result;
    return IsFloat(node.type) ? whole : Wrap(node.type, whole);
}

// --- The position of the greatest or least value -------------------------------------------------

// The best value and its position with one more value. NaN is the greatest and the least.
Ids Emitter::ArgStep(const ArgReduce& reduce,
                     ElementType type,
                     Id best,
                     Id position,
                     Id value,
                     Id at) {
    const bool greatest = reduce.combine == Combine::kMax;
    const Ids ordered = {greatest ? best : value, greatest ? value : best};
    Id better = functions_.Apply(reduce.last ? ScalarFunction::kLessEqual : ScalarFunction::kLess,
                                 type, ordered);
    if (IsFloat(type)) {
        const Id nan = IsNan(value);
        better = b_.Or(better, reduce.last ? nan : b_.And(nan, b_.Not(IsNan(best))));
    }
    return {b_.Select(better, value, best), b_.Select(better, at, position)};
}

Id Emitter::Compute(const ScalarNode&, const ArgReduce& reduce) {
    const bool cooperative = uniform_;
    const ElementType type = kernel_[reduce.body].type;
    // Invocations without a point, or whose values are all the neutral one, have no position when
    // the first is looked for; 0 is then right for all of them together.
    const Id none = U(cooperative && !reduce.last ? UINT32_MAX : 0);
    const Ids initial = {ConstantOf(type, NeutralElement(reduce.combine, type)), none};
    const Symbol& variable = reduce.loop.variable;
    const Ids result =
        Reduction({&reduce.loop, 1}, {&reduce.body, 1}, initial, cooperative,
                  [&](std::span<const Id> carried) {
                      const Id at = EmitExpr(Simplified(Expr(variable)));
                      return ArgStep(reduce, type, carried[0], carried[1], Value(reduce.body), at);
                  });
    Id position = result[1];
    if (cooperative) {
        const Id best = AcrossInvocations(reduce.combine, type, result[0]);
        const Ids both = {result[0], best};
        Id is_best = functions_.Apply(ScalarFunction::kEqual, type, both);
        if (IsFloat(type)) {
            is_best = b_.Or(is_best, b_.And(IsNan(result[0]), IsNan(best)));
        }
        position = AcrossInvocations(reduce.last ? Combine::kMax : Combine::kMin, ElementType::kU32,
                                     b_.Select(is_best, position, none));
        position = b_.Select(Test(Op::OpIEqual, position, U(UINT32_MAX)), U(0), position);
    }
    return WidePosition(position);
}

// --- Across invocations --------------------------------------------------------------------------

Id Emitter::AcrossSubgroup(Combine combine, ElementType type, Id value, bool with_nan) {
    b_.Capability(spv::Capability::GroupNonUniformArithmetic);
    const Id scope = U(static_cast<uint32_t>(spv::Scope::Subgroup));
    const auto reduce = [&](Op op, Id operand) {
        return b_.Emit(op, b_.TypeOf(operand),
                       {scope, static_cast<uint32_t>(spv::GroupOperation::Reduce), operand});
    };
    if (type == ElementType::kBool) {
        const Id word = b_.Select(value, U(1), U(0));
        const Op op = combine == Combine::kAnd  ? Op::OpGroupNonUniformBitwiseAnd
                      : combine == Combine::kOr ? Op::OpGroupNonUniformBitwiseOr
                                                : Op::OpGroupNonUniformBitwiseXor;
        return Test(Op::OpINotEqual, reduce(op, word), U(0));
    }
    const bool is_float = IsFloat(type), is_signed = IsSigned(type);
    switch (combine) {
        case Combine::kSum:
            return reduce(is_float ? Op::OpGroupNonUniformFAdd : Op::OpGroupNonUniformIAdd, value);
        case Combine::kProduct:
            return reduce(is_float ? Op::OpGroupNonUniformFMul : Op::OpGroupNonUniformIMul, value);
        case Combine::kMin:
        case Combine::kMax: {
            const bool least = combine == Combine::kMin;
            if (!is_float) {
                return reduce(
                    least ? (is_signed ? Op::OpGroupNonUniformSMin : Op::OpGroupNonUniformUMin)
                          : (is_signed ? Op::OpGroupNonUniformSMax : Op::OpGroupNonUniformUMax),
                    value);
            }
            const Id number =
                reduce(least ? Op::OpGroupNonUniformFMin : Op::OpGroupNonUniformFMax, value);
            if (!with_nan) {
                return number;
            }
            b_.Capability(spv::Capability::GroupNonUniformVote);
            const Id nan = b_.Emit(Op::OpGroupNonUniformAny, b_.Bool(), {scope, IsNan(value)});
            const Id nan_value = b_.BitsOf(b_.TypeOf(value)) == 64
                                     ? b_.Constant(b_.TypeOf(value), 0x7FF8000000000000)
                                     : b_.Constant(b_.TypeOf(value), 0x7FC00000);
            return b_.Select(nan, nan_value, number);
        }
        case Combine::kAnd:
            return reduce(Op::OpGroupNonUniformBitwiseAnd, value);
        case Combine::kOr:
            return reduce(Op::OpGroupNonUniformBitwiseOr, value);
        case Combine::kXor:
            return reduce(Op::OpGroupNonUniformBitwiseXor, value);
        case Combine::kReplace:
            break;
    }
    return value;
}

// Any subgroup size is right: what the subgroups have is combined through workgroup memory, unless
// there is but one.
Id Emitter::AcrossInvocations(Combine combine, ElementType type, Id value, bool with_nan) {
    const Id element = type == ElementType::kBool ? b_.U32() : b_.TypeOf(value);
    auto [array, is_new] = shared_.try_emplace(element, 0);
    if (is_new) {
        array->second = b_.WorkgroupArray(element, local_size_);
    }
    const Id shared = array->second;
    const auto to_memory = [&](Id v) {
        return type == ElementType::kBool ? b_.Select(v, U(1), U(0)) : v;
    };
    const auto from_memory = [&](Id v) {
        return type == ElementType::kBool ? Test(Op::OpINotEqual, v, U(0)) : v;
    };
    const Id neutral = ConstantOf(type, NeutralElement(combine, type));
    const auto combine_memory = [&](Id count) {
        const Ids initial = {neutral};
        b_.WorkgroupBarrier();
        const Id all =
            b_.For(U(0), count, U(1), initial, [&](Id index, std::span<const Id> carried) -> Ids {
                const Id other = b_.Load(b_.ElementPointer(shared, index));
                return {functions_.CombineValues(combine, type, carried[0], from_memory(other))};
            })[0];
        b_.WorkgroupBarrier();
        return all;
    };
    if (!target_.subgroup_arithmetic) {
        b_.Store(b_.ElementPointer(shared, lane_), to_memory(value));
        return combine_memory(U(local_size_));
    }
    const Id subgroup = AcrossSubgroup(combine, type, value, with_nan);
    const Id count = b_.BuiltIn(spv::BuiltIn::NumSubgroups);
    return b_.If(
        Test(Op::OpIEqual, count, U(1)), [&] { return Ids{subgroup}; },
        [&] {
            const Id first = b_.Emit(Op::OpGroupNonUniformElect, b_.Bool(),
                                     {U(static_cast<uint32_t>(spv::Scope::Subgroup))});
            const Id which = b_.BuiltIn(spv::BuiltIn::SubgroupId);
            b_.If(first, [&] { b_.Store(b_.ElementPointer(shared, which), to_memory(subgroup)); });
            return Ids{combine_memory(count)};
        })[0];
}

}  // namespace fornax::graph::loop
