// Comparisons of sizes, by their forms or by their hints.
#include "compiler/graph/ir/sizes.h"

#include <algorithm>

#include <fmt/format.h>

namespace fornax::graph {

bool Guard::operator<(const Guard& other) const {
    if (relation != other.relation) {
        return relation < other.relation;
    }
    const int first = Expr::Compare(a, other.a);
    return first != 0 ? first < 0 : Expr::Compare(b, other.b) < 0;
}

bool Guard::Holds(const Bindings& bindings) const {
    const std::optional<int64_t> x = a.Evaluate(bindings), y = b.Evaluate(bindings);
    if (!x || !y) {
        return false;
    }
    switch (relation) {
        case Relation::kEqual:
            return *x == *y;
        case Relation::kNotEqual:
            return *x != *y;
        case Relation::kLess:
            return *x < *y;
        case Relation::kLessEqual:
            break;
    }
    return *x <= *y;
}

std::string Guard::ToString() const {
    constexpr const char* kSigns[] = {"==", "!=", "<", "<="};
    return fmt::format("{} {} {}", a.ToString(), kSigns[static_cast<size_t>(relation)],
                       b.ToString());
}

Symbol SizeFacts::Declare(std::string_view name, int64_t hint, Range range) {
    const Symbol symbol(name);
    hints_.emplace(symbol, hint);
    ranges_.emplace(symbol, range);
    return symbol;
}

void SizeFacts::AddGuard(Guard guard) {
    if (known_.insert(guard).second) {
        guards_.push_back(std::move(guard));
    }
}

int64_t SizeFacts::Hint(const Expr& a) const {
    return a.is_constant() ? a.constant_part() : a.Evaluate(hints_).value_or(0);
}

bool SizeFacts::Equal(const Expr& a, const Expr& b) {
    const Expr difference = a - b;
    if (difference.is_constant()) {
        return difference.constant_part() == 0;
    }
    const Range bounds = difference.Bounds(ranges_);
    if (bounds.low > 0 || bounds.high < 0) {
        return false;
    }
    const bool equal = Hint(a) == Hint(b);
    AddGuard({equal ? Relation::kEqual : Relation::kNotEqual, a, b});
    return equal;
}

bool SizeFacts::Less(const Expr& a, const Expr& b) {
    const Range bounds = (b - a).Bounds(ranges_);
    if (bounds.low > 0) {
        return true;
    }
    if (bounds.high <= 0) {
        return false;
    }
    const bool less = Hint(a) < Hint(b);
    AddGuard(less ? Guard{Relation::kLess, a, b} : Guard{Relation::kLessEqual, b, a});
    return less;
}

bool SizeFacts::Equal(const Shape& a, const Shape& b) {
    if (a.rank() != b.rank()) {
        return false;
    }
    for (size_t axis = 0; axis < a.rank(); ++axis) {
        if (!Equal(a[axis], b[axis])) {
            return false;
        }
    }
    return true;
}

int64_t SizeFacts::Fix(const Expr& a) {
    const int64_t value = Hint(a);
    if (!a.is_constant()) {
        AddGuard({Relation::kEqual, a, value});
    }
    return value;
}

void SizeFacts::Merge(const SizeFacts& other, const std::set<Symbol>& hidden) {
    hints_.insert(other.hints_.begin(), other.hints_.end());
    ranges_.insert(other.ranges_.begin(), other.ranges_.end());
    const auto is_hidden = [&](const Expr& expr) {
        return std::ranges::any_of(expr.Symbols(),
                                   [&](const Symbol& symbol) { return hidden.contains(symbol); });
    };
    for (const Guard& guard : other.guards_) {
        if (hidden.empty() || (!is_hidden(guard.a) && !is_hidden(guard.b))) {
            AddGuard(guard);
        }
    }
}

}  // namespace fornax::graph
