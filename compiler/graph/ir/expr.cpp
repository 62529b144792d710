// Arithmetic of expressions in normal form; expr_simplify.cpp has what ranges allow.
#include "compiler/graph/ir/expr.h"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <numeric>
#include <set>

#include <fmt/format.h>

namespace fornax::graph {
namespace {

constexpr size_t kMaxTerms = 64;

int64_t SaturatingAdd(int64_t a, int64_t b) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) {
        return a < 0 ? INT64_MIN : INT64_MAX;
    }
    return sum;
}

int64_t SaturatingMultiply(int64_t a, int64_t b) {
    int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) {
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    }
    return product;
}

const std::string* Intern(std::string_view name) {
    static std::mutex mutex;
    static auto* names = new std::set<std::string, std::less<>>;  // lives as long as the process
    const std::lock_guard lock(mutex);
    auto found = names->find(name);
    if (found == names->end()) {
        found = names->emplace(name).first;
    }
    return &*found;
}

int CompareAtoms(const AtomRef& a, const AtomRef& b) {
    if (a == b) {
        return 0;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    if (a->kind == AtomKind::kSymbol) {
        const auto order = *a->symbol <=> *b->symbol;
        return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    const int first = Expr::Compare(a->a, b->a);
    return first != 0 ? first : Expr::Compare(a->b, b->b);
}

int CompareFactors(std::span<const AtomRef> a, std::span<const AtomRef> b) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        if (const int order = CompareAtoms(a[i], b[i]); order != 0) {
            return order;
        }
    }
    return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

}  // namespace

Symbol::Symbol(std::string_view name) : name_(Intern(name)) {}

int64_t FloorDivide(int64_t a, int64_t b) {
    if (b == -1) {
        return a == INT64_MIN ? INT64_MAX : -a;
    }
    const int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t FloorModulo(int64_t a, int64_t b) {
    if (b == -1) {
        return 0;
    }
    const int64_t remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// Makes expressions from sorted parts; the only code that sees both members.
class ExprBuilder {
  public:
    static Expr FromAtom(ExprAtom atom) {
        Expr expr;
        expr.terms_.push_back({1, {std::make_shared<const ExprAtom>(std::move(atom))}});
        return expr;
    }
    static Expr FromTerm(ExprTerm term) {
        Expr expr;
        if (term.factors.empty()) {
            expr.constant_ = term.coefficient;
        } else if (term.coefficient != 0) {
            expr.terms_.push_back(std::move(term));
        }
        return expr;
    }
    static Expr Sum(const Expr& a, const Expr& b) {
        Expr sum(SaturatingAdd(a.constant_, b.constant_));
        sum.terms_.reserve(a.terms_.size() + b.terms_.size());
        size_t i = 0, j = 0;
        while (i < a.terms_.size() || j < b.terms_.size()) {
            int order = i == a.terms_.size() ? 1 : -1;
            if (i < a.terms_.size() && j < b.terms_.size()) {
                order = CompareFactors(a.terms_[i].factors, b.terms_[j].factors);
            }
            if (order < 0) {
                sum.terms_.push_back(a.terms_[i++]);
            } else if (order > 0) {
                sum.terms_.push_back(b.terms_[j++]);
            } else {
                const int64_t coefficient =
                    SaturatingAdd(a.terms_[i].coefficient, b.terms_[j].coefficient);
                if (coefficient != 0) {
                    sum.terms_.push_back({coefficient, a.terms_[i].factors});
                }
                ++i;
                ++j;
            }
        }
        return sum;
    }
    static Expr Scaled(const Expr& a, int64_t factor) {
        if (factor == 0) {
            return {};
        }
        Expr result = a;
        result.constant_ = SaturatingMultiply(a.constant_, factor);
        for (ExprTerm& term : result.terms_) {
            term.coefficient = SaturatingMultiply(term.coefficient, factor);
        }
        return result;
    }
    static Expr Product(const ExprTerm& a, const ExprTerm& b) {
        ExprTerm product;
        product.coefficient = SaturatingMultiply(a.coefficient, b.coefficient);
        product.factors.resize(a.factors.size() + b.factors.size());
        std::merge(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
                   product.factors.begin(),
                   [](const AtomRef& x, const AtomRef& y) { return CompareAtoms(x, y) < 0; });
        return FromTerm(std::move(product));
    }
};

Expr::Expr(const Symbol& symbol) {
    *this = ExprBuilder::FromAtom({AtomKind::kSymbol, symbol, {}, {}});
}

std::optional<int64_t> Expr::constant() const {
    return is_constant() ? std::optional(constant_) : std::nullopt;
}

Expr Expr::operator-() const {
    return ExprBuilder::Scaled(*this, -1);
}

Expr operator+(const Expr& a, const Expr& b) {
    if (a.is_constant() && b.is_constant()) {
        return {SaturatingAdd(a.constant_, b.constant_)};
    }
    return ExprBuilder::Sum(a, b);
}

Expr operator*(const Expr& a, const Expr& b) {
    if (a.is_constant()) {
        return ExprBuilder::Scaled(b, a.constant_);
    }
    if (b.is_constant()) {
        return ExprBuilder::Scaled(a, b.constant_);
    }
    if ((a.terms_.size() + 1) * (b.terms_.size() + 1) > kMaxTerms) {
        const bool in_order = Expr::Compare(a, b) <= 0;
        return ExprBuilder::FromAtom(
            {AtomKind::kProduct, std::nullopt, in_order ? a : b, in_order ? b : a});
    }
    Expr result = ExprBuilder::Scaled(b, a.constant_);
    for (const ExprTerm& x : a.terms_) {
        result +=
            ExprBuilder::FromTerm({SaturatingMultiply(x.coefficient, b.constant_), x.factors});
        for (const ExprTerm& y : b.terms_) {
            result += ExprBuilder::Product(x, y);
        }
    }
    return result;
}

int Expr::Compare(const Expr& a, const Expr& b) {
    for (size_t i = 0; i < std::min(a.terms_.size(), b.terms_.size()); ++i) {
        const ExprTerm &x = a.terms_[i], &y = b.terms_[i];
        if (const int order = CompareFactors(x.factors, y.factors); order != 0) {
            return order;
        }
        if (x.coefficient != y.coefficient) {
            return x.coefficient < y.coefficient ? -1 : 1;
        }
    }
    if (a.terms_.size() != b.terms_.size()) {
        return a.terms_.size() < b.terms_.size() ? -1 : 1;
    }
    return a.constant_ == b.constant_ ? 0 : a.constant_ < b.constant_ ? -1 : 1;
}

namespace {

void CollectSymbols(const Expr& expr, std::set<Symbol>& symbols) {
    for (const ExprTerm& term : expr.terms()) {
        for (const AtomRef& atom : term.factors) {
            if (atom->kind == AtomKind::kSymbol) {
                symbols.insert(*atom->symbol);
            } else {
                CollectSymbols(atom->a, symbols);
                CollectSymbols(atom->b, symbols);
            }
        }
    }
}

bool AtomUses(const AtomRef& atom, const Symbol& symbol) {
    return atom->kind == AtomKind::kSymbol ? *atom->symbol == symbol
                                           : atom->a.Uses(symbol) || atom->b.Uses(symbol);
}

Expr MakeFunction(AtomKind kind, const Expr& a, const Expr& b) {
    switch (kind) {
        case AtomKind::kFloorDiv:
            return FloorDiv(a, b);
        case AtomKind::kMod:
            return Mod(a, b);
        case AtomKind::kMin:
            return Min(a, b);
        case AtomKind::kMax:
            return Max(a, b);
        case AtomKind::kProduct:
        case AtomKind::kSymbol:
            break;
    }
    return a * b;
}

}  // namespace

std::vector<Symbol> Expr::Symbols() const {
    std::set<Symbol> symbols;
    CollectSymbols(*this, symbols);
    return {symbols.begin(), symbols.end()};
}

bool Expr::Uses(const Symbol& symbol) const {
    return std::any_of(terms_.begin(), terms_.end(), [&](const ExprTerm& term) {
        return std::any_of(term.factors.begin(), term.factors.end(),
                           [&](const AtomRef& atom) { return AtomUses(atom, symbol); });
    });
}

std::optional<Expr> Expr::Coefficient(const Symbol& symbol) const {
    Expr coefficient;
    for (const ExprTerm& term : terms_) {
        ExprTerm rest{term.coefficient, {}};
        size_t occurrences = 0;
        for (const AtomRef& atom : term.factors) {
            if (!AtomUses(atom, symbol)) {
                rest.factors.push_back(atom);
            } else if (atom->kind != AtomKind::kSymbol || ++occurrences > 1) {
                return std::nullopt;
            }
        }
        if (occurrences == 1) {
            coefficient += ExprBuilder::FromTerm(std::move(rest));
        }
    }
    return coefficient;
}

Expr Expr::Without(const Symbol& symbol) const {
    Expr rest(constant_);
    for (const ExprTerm& term : terms_) {
        const bool used =
            std::any_of(term.factors.begin(), term.factors.end(), [&](const AtomRef& atom) {
                return atom->kind == AtomKind::kSymbol && *atom->symbol == symbol;
            });
        if (!used) {
            rest.terms_.push_back(term);
        }
    }
    return rest;
}

Expr Expr::Substitute(const std::map<Symbol, Expr>& values) const {
    Expr result(constant_);
    for (const ExprTerm& term : terms_) {
        Expr product(term.coefficient);
        for (const AtomRef& atom : term.factors) {
            if (atom->kind == AtomKind::kSymbol) {
                const auto found = values.find(*atom->symbol);
                product *= found == values.end() ? Expr(*atom->symbol) : found->second;
            } else {
                product *= MakeFunction(atom->kind, atom->a.Substitute(values),
                                        atom->b.Substitute(values));
            }
        }
        result += product;
    }
    return result;
}

std::optional<int64_t> EvaluateFunction(AtomKind kind, int64_t a, int64_t b) {
    int64_t product = 0;
    switch (kind) {
        case AtomKind::kFloorDiv:
            return b == 0 ? std::nullopt : std::optional(FloorDivide(a, b));
        case AtomKind::kMod:
            return b == 0 ? std::nullopt : std::optional(FloorModulo(a, b));
        case AtomKind::kMin:
            return std::min(a, b);
        case AtomKind::kMax:
            return std::max(a, b);
        default:
            return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
    }
}

std::optional<int64_t> Expr::Evaluate(const Bindings& values) const {
    return EvaluateWith([&](const ExprAtom& symbol) {
        const auto found = values.find(*symbol.symbol);
        return found == values.end() ? std::nullopt : std::optional(found->second);
    });
}

namespace {

// The greatest number that divides every coefficient and the constant.
int64_t CommonDivisor(const Expr& a) {
    int64_t divisor = a.constant_part() == INT64_MIN ? 1 : std::abs(a.constant_part());
    for (const ExprTerm& term : a.terms()) {
        divisor = std::gcd(divisor, term.coefficient == INT64_MIN ? 1 : term.coefficient);
    }
    return divisor;
}

Expr DividedBy(const Expr& a, int64_t divisor) {
    Expr result(a.constant_part() / divisor);
    for (const ExprTerm& term : a.terms()) {
        result += ExprBuilder::FromTerm({term.coefficient / divisor, term.factors});
    }
    return result;
}

// `term` divided by `divisor`, if that leaves no remainder whatever the symbols are.
std::optional<Expr> ExactQuotient(const ExprTerm& term, const ExprTerm& divisor) {
    if (divisor.coefficient == 0 || divisor.coefficient == -1 ||
        term.coefficient % divisor.coefficient != 0) {
        return std::nullopt;
    }
    ExprTerm quotient{term.coefficient / divisor.coefficient, term.factors};
    for (const AtomRef& atom : divisor.factors) {
        const auto found =
            std::find_if(quotient.factors.begin(), quotient.factors.end(),
                         [&](const AtomRef& other) { return CompareAtoms(atom, other) == 0; });
        if (found == quotient.factors.end()) {
            return std::nullopt;
        }
        quotient.factors.erase(found);
    }
    return ExprBuilder::FromTerm(std::move(quotient));
}

// a = quotient * b + remainder, where the quotient holds the terms that b divides exactly.
struct Split {
    Expr quotient, remainder;
};

Split SplitBy(const Expr& a, const Expr& b) {
    Split split;
    ExprTerm divisor;
    if (b.is_constant()) {
        divisor = {b.constant_part(), {}};
        split.quotient = FloorDivide(a.constant_part(), b.constant_part());
        split.remainder = FloorModulo(a.constant_part(), b.constant_part());
    } else if (b.terms().size() == 1 && b.constant_part() == 0) {
        divisor = b.terms()[0];
        split.remainder = a.constant_part();
    } else {
        split.remainder = a;
        return split;
    }
    for (const ExprTerm& term : a.terms()) {
        const std::optional<Expr> quotient = ExactQuotient(term, divisor);
        if (quotient) {
            split.quotient += *quotient;
        } else {
            split.remainder += ExprBuilder::FromTerm(term);
        }
    }
    return split;
}

Expr Function(AtomKind kind, const Expr& a, const Expr& b) {
    return ExprBuilder::FromAtom({kind, std::nullopt, a, b});
}

}  // namespace

Expr FloorDiv(const Expr& a, const Expr& b) {
    if (b == Expr(0)) {
        return Function(AtomKind::kFloorDiv, a, b);
    }
    if (b == Expr(1)) {
        return a;
    }
    if (b == Expr(-1)) {
        return -a;
    }
    if (a == b) {
        return 1;  // a size that is 0 has no elements whose index could be divided by it
    }
    Split split = SplitBy(a, b);
    if (split.remainder.is_constant() && b.is_constant()) {
        return split.quotient;  // the remainder is within 0..b-1
    }
    if (split.remainder == Expr(0)) {
        return split.quotient;
    }
    Expr dividend = split.remainder, divisor = b;
    const int64_t common = std::gcd(CommonDivisor(dividend), CommonDivisor(divisor));
    if (common > 1) {
        dividend = DividedBy(dividend, common);
        divisor = DividedBy(divisor, common);
        if (divisor == Expr(1)) {
            return split.quotient + dividend;
        }
    }
    // floor(floor(x / c) / d) = floor(x / (c * d)) for positive c and d.
    if (dividend.terms().size() == 1 && dividend.constant_part() == 0 &&
        dividend.terms()[0].coefficient == 1 && dividend.terms()[0].factors.size() == 1) {
        const ExprAtom& inner = *dividend.terms()[0].factors[0];
        if (inner.kind == AtomKind::kFloorDiv && inner.b.is_constant() && divisor.is_constant() &&
            inner.b.constant_part() > 0 && divisor.constant_part() > 0) {
            return split.quotient + FloorDiv(inner.a, inner.b * divisor);
        }
    }
    return split.quotient + Function(AtomKind::kFloorDiv, dividend, divisor);
}

Expr Mod(const Expr& a, const Expr& b) {
    if (b == Expr(0)) {
        return Function(AtomKind::kMod, a, b);
    }
    if (b == Expr(1) || b == Expr(-1) || a == b) {
        return 0;
    }
    const Split split = SplitBy(a, b);
    if (split.remainder.is_constant() && (b.is_constant() || split.remainder == Expr(0))) {
        return split.remainder;
    }
    return Function(AtomKind::kMod, split.remainder, b);
}

Expr CeilDiv(const Expr& a, const Expr& b) {
    return FloorDiv(a + b - 1, b);
}

Expr Min(const Expr& a, const Expr& b) {
    const Expr difference = a - b;
    if (difference.is_constant()) {
        return difference.constant_part() <= 0 ? a : b;
    }
    return Expr::Compare(a, b) < 0 ? Function(AtomKind::kMin, a, b)
                                   : Function(AtomKind::kMin, b, a);
}

Expr Max(const Expr& a, const Expr& b) {
    const Expr difference = a - b;
    if (difference.is_constant()) {
        return difference.constant_part() >= 0 ? a : b;
    }
    return Expr::Compare(a, b) < 0 ? Function(AtomKind::kMax, a, b)
                                   : Function(AtomKind::kMax, b, a);
}

namespace {

std::string AtomText(const ExprAtom& atom) {
    switch (atom.kind) {
        case AtomKind::kSymbol:
            return atom.symbol->name();
        case AtomKind::kFloorDiv:
            return fmt::format("floor({}, {})", atom.a.ToString(), atom.b.ToString());
        case AtomKind::kMod:
            return fmt::format("mod({}, {})", atom.a.ToString(), atom.b.ToString());
        case AtomKind::kMin:
            return fmt::format("min({}, {})", atom.a.ToString(), atom.b.ToString());
        case AtomKind::kMax:
            return fmt::format("max({}, {})", atom.a.ToString(), atom.b.ToString());
        case AtomKind::kProduct:
            break;
    }
    return fmt::format("product({}, {})", atom.a.ToString(), atom.b.ToString());
}

}  // namespace

std::string Expr::ToString() const {
    std::string text;
    for (const ExprTerm& term : terms_) {
        const bool negative = term.coefficient < 0;
        text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
        const uint64_t magnitude = negative ? -static_cast<uint64_t>(term.coefficient)
                                            : static_cast<uint64_t>(term.coefficient);
        if (magnitude != 1) {
            text += fmt::format("{}*", magnitude);
        }
        for (size_t i = 0; i < term.factors.size(); ++i) {
            text += (i == 0 ? "" : "*") + AtomText(*term.factors[i]);
        }
    }
    if (text.empty()) {
        return fmt::format("{}", constant_);
    }
    if (constant_ != 0) {
        text += constant_ < 0 ? fmt::format(" - {}", -static_cast<uint64_t>(constant_))
                              : fmt::format(" + {}", constant_);
    }
    return text;
}

}  // namespace fornax::graph
