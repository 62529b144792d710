// Reductions (emit_reduce.h).
#include "compiler/graph/loop/emit_reduce.h"

#include <algorithm>

namespace fornax::graph::loop {

using spv::Op;

namespace {

// Reductions of so few points are written out, if that is not too much code.
constexpr int64_t kMaxUnrolledPoints = 16;
constexpr int64_t kMaxUnrolledTaps = 64;  // of a window
constexpr int64_t kMaxUnrolledScalars = 192;

}  // namespace

bool ReductionCode::ShouldUnroll(std::span<const Loop> loops,
                                 const std::vector<bool>& needed) const {
    const int64_t most = scalars_.staged().empty() ? kMaxUnrolledPoints : kMaxUnrolledTaps;
    int64_t points = 1;
    for (const Loop& loop : loops) {
        const std::optional<int64_t> extent = loop.extent.constant();
        if (!extent || *extent > most) {
            return false;
        }
        points *= std::max<int64_t>(*extent, 0);
    }
    const VariableSet variables = scope_.VariablesOf(loops);
    int64_t scalars = 0;
    for (size_t i = 0; i < needed.size(); ++i) {
        if (needed[i] && (scope_.free[i] & variables) != 0) {
            const bool nested = !LoopsOf(kernel_.scalars[i]).empty();
            scalars += nested ? kMaxUnrolledScalars : 1;
        }
    }
    return points <= most && points * scalars <= kMaxUnrolledScalars;
}

Ids ReductionCode::Reduction(std::span<const Loop> loops,
                             std::span<const ScalarId> bodies,
                             std::span<const Id> initial,
                             bool cooperative,
                             const LoopCode::PointBody& body,
                             size_t ways) {
    const VariableSet variables = scope_.VariablesOf(loops);
    if ((variables & point_.variables()) != 0) {
        Reject("a reduction is inside of another one with the same variable");
        return {initial.begin(), initial.end()};
    }
    const std::vector<bool> needed = scalars_.Needed(bodies);
    const BoundVariables bound(point_);
    const UniformCode apart(point_, false);
    if (!cooperative && ShouldUnroll(loops, needed)) {
        scalars_.Hoist(needed);
        point_.AddVariables(variables);
        return loops_.Unrolled(loops, initial, body);
    }
    const MergeScope merges(nests_);
    const std::vector<bool> varying = scope_.VaryingWith(variables, needed);
    const Nest nest = nests_.Collapse(loops, nests_.UsesIn(varying, {}));
    scalars_.Hoist(needed);
    point_.AddVariables(variables);
    const size_t several = loops_.SeveralOf(varying, variables);
    const size_t at_once = several > 1 && ways > 1 ? ways : several;
    return cooperative ? loops_.ForLanes(nest, initial, body, ways, at_once)
                       : loops_.ForNest(nest.loops, initial, body);
}

bool ReductionCode::IsOfNumbers(ScalarId reduce) const {
    return std::find(code_.softmax.maxima.begin(), code_.softmax.maxima.end(), reduce) !=
           code_.softmax.maxima.end();
}

Id ReductionCode::Combined(ScalarId reduce, Id a, Id b) {
    if (IsOfNumbers(reduce)) {
        return b_.Select(Test(Op::OpFOrdGreaterThan, b, a), b, a);
    }
    return functions_.CombineValues(std::get<Reduce>(kernel_[reduce].value).combine,
                                    kernel_[reduce].type, a, b);
}

Id ReductionCode::CombinedOfWorkgroup(ScalarId reduce, Id value) {
    return workgroup_.Combined(std::get<Reduce>(kernel_[reduce].value).combine,
                               kernel_[reduce].type, value, !IsOfNumbers(reduce));
}

Id ReductionCode::ReductionValue(ScalarId id) {
    const ScalarNode& node = kernel_[id];
    const auto* reduce = std::get_if<Reduce>(&node.value);
    return reduce != nullptr ? ValueOf(id, *reduce) : ValueOf(std::get<ArgReduce>(node.value));
}

Id ReductionCode::ValueOf(ScalarId id, const Reduce& reduce) {
    const ScalarNode& node = kernel_[id];
    const bool cooperative = point_.uniform();
    const size_t ways = cooperative ? loops_.WaysOf(reduce.loops) : 1;
    const Ids initial(ways, ConstantOf(node.type, NeutralElement(reduce.combine, node.type)));
    const Ids results = Reduction(
        reduce.loops, {&reduce.body, 1}, initial, cooperative,
        [&](std::span<const Id> carried) -> Ids {
            return {Combined(id, carried[0], scalars_.Value(reduce.body))};
        },
        ways);
    Id result = results[0];
    for (size_t way = 1; way < ways; ++way) {
        result = Combined(id, result, results[way]);
    }
    const Id whole = cooperative ? CombinedOfWorkgroup(id, result) : result;
    return IsFloat(node.type) ? whole : Wrap(node.type, whole);
}

// --- The position of the greatest or least value -------------------------------------------------

Ids ReductionCode::ArgStep(const ArgReduce& reduce,
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

Id ReductionCode::ValueOf(const ArgReduce& reduce) {
    const bool cooperative = point_.uniform();
    const ElementType type = kernel_[reduce.body].type;
    // Invocations without a point, or whose values are all the neutral one, have no position when
    // the first is looked for; 0 is then right for all of them together.
    const Id none = U(cooperative && !reduce.last ? UINT32_MAX : 0);
    const Ids initial = {ConstantOf(type, NeutralElement(reduce.combine, type)), none};
    const Symbol& variable = reduce.loop.variable;
    const Ids result = Reduction({&reduce.loop, 1}, {&reduce.body, 1}, initial, cooperative,
                                 [&](std::span<const Id> carried) {
                                     const Id at = index_.EmitSimplified(Expr(variable));
                                     return ArgStep(reduce, type, carried[0], carried[1],
                                                    scalars_.Value(reduce.body), at);
                                 });
    Id position = result[1];
    if (cooperative) {
        const Id best = workgroup_.Combined(reduce.combine, type, result[0]);
        const Ids both = {result[0], best};
        Id is_best = functions_.Apply(ScalarFunction::kEqual, type, both);
        if (IsFloat(type)) {
            is_best = b_.Or(is_best, b_.And(IsNan(result[0]), IsNan(best)));
        }
        position = workgroup_.Combined(reduce.last ? Combine::kMax : Combine::kMin,
                                       ElementType::kU32, b_.Select(is_best, position, none));
        position = b_.Select(Test(Op::OpIEqual, position, U(UINT32_MAX)), U(0), position);
    }
    return WidePosition(position);
}

}  // namespace fornax::graph::loop
