#include "compiler/graph/loop/value_ranges.h"

#include <algorithm>
#include <cmath>

namespace fornax::graph::loop {
namespace {

// Kernels from files may have long chains.
constexpr int kMostDepth = 8;

// Those between which casts keep small whole numbers.
bool IsSimple(ElementType type) {
    return type == ElementType::kF32 || type == ElementType::kF64 ||
           (IsInteger(type) && type != ElementType::kBool && BitsOf(type) <= 32);
}

std::optional<ValueRange> Find(const Kernel& kernel, ScalarId id, int depth);

std::optional<ValueRange> RangeOfClamp(const Kernel& kernel, const Map& map, int depth) {
    const bool is_min = map.function == ScalarFunction::kMin;
    if (!is_min && map.function != ScalarFunction::kMax) {
        return std::nullopt;
    }
    for (const size_t bound : {0, 1}) {
        const ScalarNode& node = kernel[map.arguments[bound]];
        const auto* constant = std::get_if<Constant>(&node.value);
        const double limit = constant == nullptr ? NAN : constant->value.ToDouble(node.type);
        if (std::isnan(limit)) {
            continue;
        }
        const ValueRange inner =
            Find(kernel, map.arguments[1 - bound], depth).value_or(ValueRange{-INFINITY, INFINITY});
        return is_min ? ValueRange{std::min(inner.low, limit), std::min(inner.high, limit)}
                      : ValueRange{std::max(inner.low, limit), std::max(inner.high, limit)};
    }
    return std::nullopt;
}

std::optional<ValueRange> RangeOfCast(const Kernel& kernel,
                                      ElementType to,
                                      const Cast& cast,
                                      int depth) {
    const ElementType from = kernel[cast.argument].type;
    std::optional<ValueRange> range = Find(kernel, cast.argument, depth);
    if (!range || !IsSimple(from) || !IsSimple(to)) {
        return std::nullopt;
    }
    if (IsInteger(to)) {
        if (!Fits(*range, to)) {
            return std::nullopt;
        }
        if (IsFloat(from)) {  // NaN becomes 0
            range = {std::min(std::trunc(range->low), 0.0), std::max(std::trunc(range->high), 0.0)};
        }
    }
    return range;
}

std::optional<ValueRange> Find(const Kernel& kernel, ScalarId id, int depth) {
    const ScalarNode& node = kernel[id];
    if (depth == 0) {
        return std::nullopt;
    }
    if (const auto* constant = std::get_if<Constant>(&node.value)) {
        const double value = constant->value.ToDouble(node.type);
        return std::isnan(value) ? std::nullopt : std::optional(ValueRange{value, value});
    }
    if (const auto* map = std::get_if<Map>(&node.value)) {
        return RangeOfClamp(kernel, *map, depth - 1);
    }
    if (const auto* cast = std::get_if<Cast>(&node.value)) {
        return RangeOfCast(kernel, node.type, *cast, depth - 1);
    }
    return std::nullopt;
}

}  // namespace

std::optional<ValueRange> RangeOf(const Kernel& kernel, ScalarId id) {
    return Find(kernel, id, kMostDepth);
}

bool Fits(const ValueRange& range, ElementType type) {
    const auto bits = static_cast<int>(BitsOf(type));
    const double least = IsSigned(type) ? -std::ldexp(1.0, bits - 1) : 0;
    const double greatest = std::ldexp(1.0, IsSigned(type) ? bits - 1 : bits) - 1;
    return range.low >= least && range.high <= greatest;
}

}  // namespace fornax::graph::loop
