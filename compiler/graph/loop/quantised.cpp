#include "compiler/graph/loop/quantised.h"

#include <cmath>

#include "compiler/graph/loop/value_ranges.h"

namespace fornax::graph::loop {
namespace {

// The greatest whole number: its product with a divisor rounds to it again when it is divided.
constexpr double kMostWhole = 1 << 16;
// Divisors between these keep products and quotients far from overflowing.
constexpr double kLeastDivisor = 0x1p-60, kMostDivisor = 0x1p60;
// Kernels from files may have long chains.
constexpr int kMostCasts = 4;

// The constant of a map of two arguments, and the other argument.
struct WithConstant {
    double constant = 0;
    ScalarId other;
};

std::optional<WithConstant> Match(const Kernel& kernel, ScalarId id, ScalarFunction function) {
    const auto* map = std::get_if<Map>(&kernel[id].value);
    if (map == nullptr || map->function != function) {
        return std::nullopt;
    }
    const bool commutes = function != ScalarFunction::kDiv && function != ScalarFunction::kSub;
    for (const size_t side : {1, 0}) {
        const ScalarNode& node = kernel[map->arguments[side]];
        const auto* constant = std::get_if<Constant>(&node.value);
        if (constant != nullptr && (side == 1 || commutes)) {
            return WithConstant{constant->value.ToDouble(node.type), map->arguments[1 - side]};
        }
    }
    return std::nullopt;
}

bool IsWhole(double value) {
    return std::fabs(value) <= kMostWhole && value == std::trunc(value);
}

}  // namespace

std::optional<Quantised> FindQuantised(const Kernel& kernel, ScalarId id) {
    if (kernel[id].type != ElementType::kF32) {
        return std::nullopt;
    }
    ScalarId inner = id;
    double low = 0, high = 0;
    if (const auto min = Match(kernel, id, ScalarFunction::kMin)) {
        const auto max = Match(kernel, min->other, ScalarFunction::kMax);
        if (!max) {
            return std::nullopt;
        }
        low = max->constant, high = min->constant, inner = max->other;
    } else if (const auto max = Match(kernel, id, ScalarFunction::kMax)) {
        const auto least = Match(kernel, max->other, ScalarFunction::kMin);
        if (!least) {
            return std::nullopt;
        }
        low = max->constant, high = least->constant, inner = least->other;
    } else {
        return std::nullopt;
    }
    double zero = 0;
    if (const auto add = Match(kernel, inner, ScalarFunction::kAdd)) {
        zero = add->constant, inner = add->other;
    }
    const auto* round = std::get_if<Map>(&kernel[inner].value);
    if (round == nullptr || round->function != ScalarFunction::kRound) {
        return std::nullopt;
    }
    const auto quotient = Match(kernel, round->arguments[0], ScalarFunction::kDiv);
    if (!quotient || !IsWhole(low) || !IsWhole(high) || !IsWhole(zero) || low > 0 || high < 0 ||
        low == high || kernel[quotient->other].type != ElementType::kF32 ||
        !(quotient->constant >= kLeastDivisor) || !(quotient->constant <= kMostDivisor)) {
        return std::nullopt;
    }
    return Quantised{.dividend = quotient->other,
                     .divisor = static_cast<float>(quotient->constant),
                     .low = static_cast<float>(low - zero),
                     .high = static_cast<float>(high - zero),
                     .zero = static_cast<int32_t>(zero)};
}

std::optional<WholeNumber> FindWholeNumber(const Kernel& kernel, ScalarId id) {
    WholeNumber found;
    if (const auto sub = Match(kernel, id, ScalarFunction::kSub)) {
        if (kernel[id].type != ElementType::kI32 || !IsWhole(sub->constant)) {
            return std::nullopt;
        }
        found.plus = -static_cast<int32_t>(sub->constant);
        id = sub->other;
    }
    for (int casts = 0; casts < kMostCasts; ++casts) {
        const auto* cast = std::get_if<Cast>(&kernel[id].value);
        const ElementType type = kernel[id].type;
        if (cast == nullptr || !IsInteger(type) || type == ElementType::kBool) {
            return std::nullopt;
        }
        const std::optional<ValueRange> range = RangeOf(kernel, cast->argument);
        if (!range || !Fits(*range, type)) {
            return std::nullopt;
        }
        id = cast->argument;
        if (kernel[id].type == ElementType::kF32) {
            found.number = id;
            return found;
        }
    }
    return std::nullopt;
}

}  // namespace fornax::graph::loop
