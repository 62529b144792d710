// Classes of equal forms, from the guards that say "equal".
#include "compiler/graph/plan/size_proofs.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace fornax::graph {
namespace {

// Replaced values are symbols and numbers only: larger ones could grow without bound when one
// replaces a part of the next.
std::optional<Symbol> AsSymbol(const Expr& expr) {
    const std::vector<Symbol> symbols = expr.Symbols();
    return symbols.size() == 1 && expr == Expr(symbols[0]) ? std::optional(symbols[0])
                                                           : std::nullopt;
}

// Expressions saturate; numbers up to here do not.
constexpr double kMaxNumber = 0x1p60;

}  // namespace

SizeProofs::SizeProofs(std::span<const Guard> guards) : guards_(guards) {
    std::vector<const Guard*> equalities;
    for (const Guard& guard : guards) {
        if (guard.relation != Relation::kEqual) {
            continue;
        }
        equalities.push_back(&guard);
        const Expr a = Canonical(guard.a), b = Canonical(guard.b);
        std::optional<Symbol> replaced = AsSymbol(a);
        Expr value = b;
        if (!replaced || (!b.is_constant() && !AsSymbol(b))) {
            replaced = a.is_constant() ? AsSymbol(b) : std::nullopt;
            value = a;
        }
        if (!replaced || value == Expr(*replaced)) {
            continue;
        }
        for (auto& [symbol, old] : values_) {
            old = old.Substitute({{*replaced, value}});
        }
        values_.emplace(*replaced, value);
    }
    for (const Guard* guard : equalities) {
        const Expr a = Canonical(guard->a), b = Canonical(guard->b);
        if (GreatestNumber(a) < kMaxNumber && GreatestNumber(b) < kMaxNumber) {
            differences_.push_back(a - b);
        }
        for (const Expr* form : {&a, &b}) {
            if (numbers_.emplace(*form, parents_.size()).second) {
                parents_.push_back(parents_.size());
            }
        }
        parents_[ClassOf(a)] = ClassOf(b);
    }
}

// No number in the expression, nor in what substitution makes of it on the way, is greater.
double SizeProofs::GreatestNumber(const Expr& expr) const {
    double sum = std::abs(static_cast<double>(expr.constant_part()));
    for (const ExprTerm& term : expr.terms()) {
        double product = std::abs(static_cast<double>(term.coefficient));
        for (const AtomRef& atom : term.factors) {
            if (atom->kind == AtomKind::kSymbol) {
                const auto value = values_.find(*atom->symbol);
                product *= value == values_.end() || !value->second.is_constant()
                               ? 1
                               : std::max(1.0, GreatestNumber(value->second));
                continue;
            }
            const double a = std::max(1.0, GreatestNumber(atom->a));
            const double b = std::max(1.0, GreatestNumber(atom->b));
            product *= a * b;
        }
        sum += product;
    }
    return sum;
}

Expr SizeProofs::Canonical(const Expr& expr) const {
    return values_.empty() || expr.is_constant() || !(GreatestNumber(expr) < kMaxNumber)
               ? expr
               : expr.Substitute(values_);
}

// parents_.size() for a form of which the guards say nothing.
size_t SizeProofs::ClassOf(const Expr& canonical) const {
    const auto found = numbers_.find(canonical);
    if (found == numbers_.end()) {
        return parents_.size();
    }
    size_t number = found->second;
    while (parents_[number] != number) {
        number = parents_[number];
    }
    return number;
}

bool SizeProofs::AreEqual(const Expr& a, const Expr& b) const {
    if (a == b) {
        return true;
    }
    const Expr x = Canonical(a), y = Canonical(b);
    if (x == y) {
        return true;
    }
    const size_t number = ClassOf(x);
    if (number < parents_.size() && number == ClassOf(y)) {
        return true;
    }
    if (!(GreatestNumber(x) < kMaxNumber && GreatestNumber(y) < kMaxNumber)) {
        return false;
    }
    const Expr difference = x - y;
    return std::any_of(differences_.begin(), differences_.end(),
                       [&](const Expr& zero) { return difference == zero || difference == -zero; });
}

bool SizeProofs::AreEqual(const Shape& a, const Shape& b) const {
    if (a.rank() != b.rank()) {
        return false;
    }
    for (size_t axis = 0; axis < a.rank(); ++axis) {
        if (!AreEqual(a[axis], b[axis])) {
            return false;
        }
    }
    return true;
}

bool SizeProofs::HaveEqualVolumes(const Shape& a, const Shape& b) const {
    if (AreEqual(a, b)) {
        return true;
    }
    for (const Shape* shape : {&a, &b}) {
        double product = 1;
        for (const Expr& dim : shape->dims()) {
            product *= std::max(1.0, GreatestNumber(dim));
        }
        if (!(product < kMaxNumber)) {
            return false;
        }
    }
    return AreEqual(a.Volume(), b.Volume());
}

bool SizeProofs::Holds(const Guard& guard) const {
    return (guard.relation == Relation::kEqual && AreEqual(guard.a, guard.b)) ||
           std::find(guards_.begin(), guards_.end(), guard) != guards_.end();
}

}  // namespace fornax::graph
