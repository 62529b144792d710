// Random functions of floats, inside of ranges where they are well conditioned, and casts.
#include <algorithm>
#include <cmath>

#include "compiler/graph/loop/random_scalars.h"

namespace fornax::graph::loop {
namespace {

struct UnaryRange {
    ScalarFunction function;
    double low, high;  // of the argument
    double slope;      // the greatest in that range
    double result_low, result_high;
};

constexpr UnaryRange kUnary[] = {
    {ScalarFunction::kSqrt, 0.25, 16, 1, 0.5, 4},
    {ScalarFunction::kRsqrt, 0.25, 16, 4, 0.25, 2},
    {ScalarFunction::kReciprocal, 0.25, 8, 16, 0.125, 4},
    {ScalarFunction::kExp, -4, 3, 20, 0, 21},
    {ScalarFunction::kExpm1, -4, 3, 20, -1, 20},
    {ScalarFunction::kLog, 0.125, 16, 8, -2.1, 2.8},
    {ScalarFunction::kLog1p, -0.5, 16, 2, -0.7, 2.9},
    {ScalarFunction::kSin, -6, 6, 1, -1, 1},
    {ScalarFunction::kCos, -6, 6, 1, -1, 1},
    {ScalarFunction::kTan, -1, 1, 3.5, -1.6, 1.6},
    {ScalarFunction::kAsin, -0.875, 0.875, 2.1, -1.1, 1.1},
    {ScalarFunction::kAcos, -0.875, 0.875, 2.1, 0.4, 2.7},
    {ScalarFunction::kAtan, -16, 16, 1, -1.6, 1.6},
    {ScalarFunction::kSinh, -3, 3, 10.1, -10.1, 10.1},
    {ScalarFunction::kCosh, -3, 3, 10.1, 1, 10.1},
    {ScalarFunction::kTanh, -16, 16, 1, -1, 1},
    {ScalarFunction::kAsinh, -16, 16, 1, -3.5, 3.5},
    {ScalarFunction::kAcosh, 1.5, 16, 1, 0.9, 3.5},
    {ScalarFunction::kAtanh, -0.875, 0.875, 4.3, -1.4, 1.4},
    {ScalarFunction::kErf, -4, 4, 1.2, -1, 1},
    {ScalarFunction::kSigmoid, -16, 16, 0.25, 0, 1},
};

bool IsCoarse(ElementType type) {
    return type == ElementType::kF8E8M0 || type == ElementType::kF4E2M1;
}

}  // namespace

double Spacing(ElementType type, double magnitude) {
    switch (type) {
        case ElementType::kF64:
        case ElementType::kF32:
            return 0;
        case ElementType::kF16:
            return magnitude * 0x1p-10 + 0x1p-24;
        case ElementType::kBF16:
            return magnitude * 0x1p-7;
        case ElementType::kF8E4M3FN:
        case ElementType::kF8E4M3FNUZ:
            return magnitude * 0x1p-3 + 0x1p-9;
        case ElementType::kF8E5M2:
        case ElementType::kF8E5M2FNUZ:
            return magnitude * 0x1p-2 + 0x1p-16;
        default:
            return magnitude;
    }
}

ScalarId RandomScalars::FloatMap(ElementType type, int depth) {
    if (type == ElementType::kF8E8M0) {
        return Leaf(type);  // it has no negative numbers and no constants near 0
    }
    const uint64_t choice = Below(100);
    return choice < 25   ? ExactMap(type, depth)
           : choice < 60 ? FloatUnary(type, depth)
                         : FloatBinary(type, depth);
}

// What needs exact arguments, and gives exact results.
ScalarId RandomScalars::ExactMap(ElementType type, int depth) {
    constexpr ScalarFunction kUnaryFunctions[] = {ScalarFunction::kFloor, ScalarFunction::kCeil,
                                                  ScalarFunction::kRound, ScalarFunction::kTrunc,
                                                  ScalarFunction::kSign,  ScalarFunction::kNeg};
    if (Chance(60)) {
        std::optional<ScalarId> argument = Existing(type, true);
        if (!argument || Chance(30)) {
            argument = ExactValue(type, depth, 64);
        }
        const double bound = std::ceil(known_[argument->value()].magnitude());
        return MapOf(kUnaryFunctions[Below(6)], {*argument},
                     {-bound, bound, 0, known_[argument->value()].integral});
    }
    constexpr ScalarFunction kQuotients[] = {ScalarFunction::kFloorDiv, ScalarFunction::kRem,
                                             ScalarFunction::kMod};
    const ScalarId a = ExactValue(type, depth, 64);
    const ScalarId b = Clamp(ExactValue(type, depth, 64), 1, 64);
    const double bound = std::max(known_[a.value()].magnitude(), known_[b.value()].magnitude());
    return MapOf(kQuotients[Below(3)], {a, b}, {-bound, bound, 0, true});
}

ScalarId RandomScalars::FloatUnary(ElementType type, int depth) {
    const UnaryRange& range = kUnary[Below(std::size(kUnary))];
    const ScalarId argument = Clamp(Value(type, depth), range.low, range.high);
    if (!IsIn(argument, range.low, range.high)) {
        return argument;  // the type is too coarse for the bounds
    }
    const double magnitude = std::max(std::abs(range.result_low), std::abs(range.result_high));
    const double error = known_[argument.value()].error * range.slope + 2e-5 * magnitude;
    return MapOf(range.function, {argument},
                 {range.result_low - error, range.result_high + error, error});
}

ScalarId RandomScalars::FloatBinary(ElementType type, int depth) {
    ScalarId a = Value(type, depth), b = Value(type, depth);
    const auto of = [&](ScalarId id) -> const Known& { return known_[id.value()]; };
    const auto finish = [&](ScalarFunction function, Known known) {
        const bool exact = of(a).integral && of(b).integral && of(a).error == 0 &&
                           of(b).error == 0 && known.magnitude() < kExact;
        known.integral = exact;
        known.error = exact ? 0 : known.error + 4 * Ulp(known.magnitude());
        return MapOf(function, {a, b}, known);
    };
    switch (Below(8)) {
        case 0:
            return finish(ScalarFunction::kAdd, {of(a).low + of(b).low, of(a).high + of(b).high,
                                                 of(a).error + of(b).error});
        case 1:
            return finish(ScalarFunction::kSub, {of(a).low - of(b).high, of(a).high - of(b).low,
                                                 of(a).error + of(b).error});
        case 2:
        case 3: {
            const double bound = of(a).magnitude() * of(b).magnitude();
            return finish(
                ScalarFunction::kMul,
                {-bound, bound, of(a).error * of(b).magnitude() + of(b).error * of(a).magnitude()});
        }
        case 4: {
            b = Clamp(b, 0.25, 8);
            if (!IsIn(b, 0.25, 8)) {
                return b;
            }
            const double bound = 4 * of(a).magnitude();
            return MapOf(ScalarFunction::kDiv, {a, b},
                         {-bound, bound,
                          4 * of(a).error + 16 * of(a).magnitude() * of(b).error + 8 * Ulp(bound)});
        }
        case 5: {
            const bool least = Chance(50);
            return MapOf(least ? ScalarFunction::kMin : ScalarFunction::kMax, {a, b},
                         Hull(of(a), of(b)));
        }
        case 6: {
            a = Clamp(a, 0.5, 4);
            b = Clamp(b, -2, 2);
            if (!IsIn(a, 0.5, 4) || !IsIn(b, -2, 2)) {
                return a;
            }
            return MapOf(ScalarFunction::kPow, {a, b},
                         {0, 17, 64 * (of(a).error + of(b).error) + 5e-4});
        }
        default: {
            a = Clamp(a, 0.25, 8);
            b = Clamp(b, 0.25, 8);
            if (!IsIn(a, 0.25, 8) || !IsIn(b, 0.25, 8)) {
                return a;
            }
            return MapOf(ScalarFunction::kAtan2, {a, b},
                         {0, 1.6, 4 * (of(a).error + of(b).error) + 5e-5});
        }
    }
}

ScalarId RandomScalars::CastValue(ElementType type, int depth) {
    const ElementType from = RandomType();
    ScalarId argument;
    if (IsFloat(from) && (!IsFloat(type) || IsCoarse(type))) {
        // A jump at each number: only of what is exact.
        const std::optional<ScalarId> existing = Existing(from, true);
        argument = existing && Chance(60) ? *existing : ExactValue(from, depth, 64);
    } else {
        argument = Value(from, depth);
    }
    Cast cast{argument, Chance(30) ? Overflow::kSaturate : Overflow::kSpecial,
              static_cast<Rounding>(Chance(60) ? 0 : Below(3))};
    if (!IsFloat(type)) {
        return Add(type, cast, BoundsOf(type));
    }
    const Known bounds = BoundsOf(type);
    cast.argument = Clamp(argument, std::max(bounds.low, -4096.0), std::min(bounds.high, 4096.0));
    Known known = known_[cast.argument.value()];
    if (known.low < bounds.low || known.high > bounds.high) {
        return Leaf(type);
    }
    known.integral |= !IsFloat(from);
    const double spacing = Spacing(type, known.magnitude());
    known.integral &= !IsCoarse(type);
    known.low = std::max(known.low - spacing, bounds.low);
    known.high = std::min(known.high + spacing, bounds.high);
    known.error += known.error == 0 ? 0 : spacing + Ulp(known.magnitude());
    if (from == ElementType::kF64 && known.error == 0 && !known.integral) {
        known.error = Ulp(known.magnitude());
    }
    return Add(type, cast, known);
}

}  // namespace fornax::graph::loop
