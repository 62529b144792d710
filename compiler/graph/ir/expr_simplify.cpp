// Bounds of expressions, and the simplifications that bounds allow.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "compiler/graph/ir/expr.h"

namespace fornax::graph {
namespace {

using Wide = __int128;

int64_t Clamp(Wide value) {
    return value < INT64_MIN   ? INT64_MIN
           : value > INT64_MAX ? INT64_MAX
                               : static_cast<int64_t>(value);
}

// INT64_MIN and INT64_MAX stand for "unbounded" and stay so.
int64_t MultiplyBound(int64_t a, int64_t b) {
    if (a == 0 || b == 0) {
        return 0;
    }
    const bool unbounded = a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX;
    if (unbounded) {
        return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    }
    return Clamp(Wide{a} * b);
}

int64_t AddBound(int64_t a, int64_t b) {
    if (a == INT64_MIN || b == INT64_MIN) {
        return INT64_MIN;
    }
    if (a == INT64_MAX || b == INT64_MAX) {
        return INT64_MAX;
    }
    return Clamp(Wide{a} + b);
}

Range Multiply(Range a, Range b) {
    const int64_t corners[] = {MultiplyBound(a.low, b.low), MultiplyBound(a.low, b.high),
                               MultiplyBound(a.high, b.low), MultiplyBound(a.high, b.high)};
    return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

int64_t DivideBound(int64_t a, int64_t b) {
    if (a == INT64_MIN || a == INT64_MAX) {
        return a;
    }
    return b == INT64_MAX ? (a < 0 ? -1 : 0) : FloorDivide(a, b);
}

Range AtomBounds(const ExprAtom& atom, const Ranges& ranges) {
    if (atom.kind == AtomKind::kSymbol) {
        const auto found = ranges.find(*atom.symbol);
        return found == ranges.end() ? Range{} : found->second;
    }
    const Range a = atom.a.Bounds(ranges), b = atom.b.Bounds(ranges);
    switch (atom.kind) {
        case AtomKind::kFloorDiv: {
            if (b.low <= 0) {
                return {};
            }
            const int64_t corners[] = {DivideBound(a.low, b.low), DivideBound(a.low, b.high),
                                       DivideBound(a.high, b.low), DivideBound(a.high, b.high)};
            return {*std::min_element(corners, corners + 4),
                    *std::max_element(corners, corners + 4)};
        }
        case AtomKind::kMod:
            if (b.low <= 0) {
                return {};
            }
            if (a.low >= 0 && a.high < b.low) {
                return a;
            }
            return {0, std::min(b.high == INT64_MAX ? INT64_MAX : b.high - 1,
                                a.low >= 0 ? a.high : INT64_MAX)};
        case AtomKind::kMin:
            return {std::min(a.low, b.low), std::min(a.high, b.high)};
        case AtomKind::kMax:
            return {std::max(a.low, b.low), std::max(a.high, b.high)};
        default:
            return Multiply(a, b);
    }
}

}  // namespace

Range Expr::Bounds(const Ranges& ranges) const {
    Range sum = {constant_, constant_};
    for (const ExprTerm& term : terms_) {
        Range product = {term.coefficient, term.coefficient};
        for (const AtomRef& atom : term.factors) {
            product = Multiply(product, AtomBounds(*atom, ranges));
        }
        sum = {AddBound(sum.low, product.low), AddBound(sum.high, product.high)};
    }
    return sum;
}

void Domain::AddVariable(const Symbol& variable, const Expr& extent) {
    extents.insert_or_assign(variable, extent);
    const Range bounds = extent.Bounds(ranges);
    ranges.insert_or_assign(variable,
                            Range{0, bounds.high == INT64_MAX ? INT64_MAX : bounds.high - 1});
}

bool Domain::IsNotNegative(const Expr& a) const {
    if (a.Bounds(ranges).low >= 0) {
        return true;
    }
    // The least value, with every variable that a is linear in at the end where a is least. That
    // end is known if the coefficient's sign is.
    Expr least = a;
    for (const Symbol& symbol : a.Symbols()) {
        const auto extent = extents.find(symbol);
        if (extent == extents.end()) {
            continue;
        }
        const std::optional<Expr> coefficient = least.Coefficient(symbol);
        if (!coefficient) {
            return false;
        }
        const Range sign = coefficient->Bounds(ranges);
        if (sign.low >= 0) {
            least = least.Without(symbol);
        } else if (sign.high <= 0) {
            least = least.Without(symbol) + *coefficient * (extent->second - 1);
        } else {
            return false;
        }
    }
    return least.Bounds(ranges).low >= 0;
}

bool Domain::IsLess(const Expr& a, const Expr& b) const {
    return IsNotNegative(b - a - 1);
}

namespace {

// expr = divisor * high + low, where low, of the terms that the divisor does not divide, is in
// 0..divisor-1. Nullopt if the terms do not part so.
struct Parted {
    Expr high, low;
};

std::optional<Parted> Part(const Expr& expr, int64_t divisor, const Domain& domain) {
    Parted parted;
    parted.high = FloorDivide(expr.constant_part(), divisor);
    parted.low = FloorModulo(expr.constant_part(), divisor);
    for (const ExprTerm& term : expr.terms()) {
        Expr product =
            term.coefficient % divisor == 0 ? term.coefficient / divisor : term.coefficient;
        for (const AtomRef& atom : term.factors) {
            Expr factor;
            switch (atom->kind) {
                case AtomKind::kSymbol:
                    factor = Expr(*atom->symbol);
                    break;
                case AtomKind::kFloorDiv:
                    factor = FloorDiv(atom->a, atom->b);
                    break;
                case AtomKind::kMod:
                    factor = Mod(atom->a, atom->b);
                    break;
                case AtomKind::kMin:
                    factor = Min(atom->a, atom->b);
                    break;
                case AtomKind::kMax:
                    factor = Max(atom->a, atom->b);
                    break;
                case AtomKind::kProduct:
                    return std::nullopt;
            }
            product *= factor;
        }
        (term.coefficient % divisor == 0 ? parted.high : parted.low) += product;
    }
    if (!domain.IsNotNegative(parted.low) || !domain.IsLess(parted.low, divisor)) {
        return std::nullopt;
    }
    return parted;
}

// The coefficients that a dividend could be parted by: those that divide the divisor, greatest
// first.
std::set<int64_t, std::greater<>> PartingCoefficients(const Expr& dividend, int64_t divisor) {
    std::set<int64_t, std::greater<>> coefficients;
    for (const ExprTerm& term : dividend.terms()) {
        const int64_t magnitude = term.coefficient == INT64_MIN ? 1 : std::abs(term.coefficient);
        if (magnitude > 1 && divisor % magnitude == 0) {
            coefficients.insert(magnitude);
        }
    }
    return coefficients;
}

Expr SimplifyDivision(const Expr& a, const Expr& b, const Domain& domain) {
    if (domain.IsNotNegative(a) && domain.IsLess(a, b)) {
        return 0;
    }
    const std::optional<int64_t> divisor = b.constant();
    if (divisor && *divisor > 1) {
        if (const auto parted = Part(a, *divisor, domain)) {
            return parted->high;
        }
        for (const int64_t coefficient : PartingCoefficients(a, *divisor)) {
            if (const auto parted = Part(a, coefficient, domain)) {
                return FloorDiv(parted->high, *divisor / coefficient);
            }
        }
    }
    // floor((n*i + j) / n) = i + floor(j / n), and FloorDiv has taken n*i out.
    return FloorDiv(a, b);
}

Expr SimplifyRemainder(const Expr& a, const Expr& b, const Domain& domain) {
    if (domain.IsNotNegative(a) && domain.IsLess(a, b)) {
        return a;
    }
    const std::optional<int64_t> divisor = b.constant();
    if (divisor && *divisor > 1) {
        if (const auto parted = Part(a, *divisor, domain)) {
            return parted->low;
        }
        for (const int64_t coefficient : PartingCoefficients(a, *divisor)) {
            if (const auto parted = Part(a, coefficient, domain)) {
                return coefficient * Mod(parted->high, *divisor / coefficient) + parted->low;
            }
        }
    }
    return Mod(a, b);
}

// A function whose operands are simple, simplified once more if its form changed.
Expr SimplifyAtom(const ExprAtom& atom, const Domain& domain) {
    const Expr a = atom.a.Simplify(domain), b = atom.b.Simplify(domain);
    Expr result;
    switch (atom.kind) {
        case AtomKind::kSymbol:
            return {*atom.symbol};
        case AtomKind::kFloorDiv:
            result = SimplifyDivision(a, b, domain);
            break;
        case AtomKind::kMod:
            result = SimplifyRemainder(a, b, domain);
            break;
        case AtomKind::kMin:
            result = domain.IsNotNegative(b - a) ? a : domain.IsNotNegative(a - b) ? b : Min(a, b);
            break;
        case AtomKind::kMax:
            result = domain.IsNotNegative(b - a) ? b : domain.IsNotNegative(a - b) ? a : Max(a, b);
            break;
        case AtomKind::kProduct:
            return a * b;
    }
    return result;
}

Expr SimplifyOnce(const Expr& expr, const Domain& domain) {
    Expr result(expr.constant_part());
    for (const ExprTerm& term : expr.terms()) {
        Expr product(term.coefficient);
        for (const AtomRef& atom : term.factors) {
            if (atom->kind == AtomKind::kSymbol) {
                // A variable that has one value is this value.
                const auto range = domain.ranges.find(*atom->symbol);
                const bool fixed = range != domain.ranges.end() && range->second.is_one();
                product *= fixed ? Expr(range->second.low) : Expr(*atom->symbol);
            } else {
                product *= SimplifyAtom(*atom, domain);
            }
        }
        result += product;
    }
    return result;
}

// c * floor(a / c) + mod(a, c) is a: what a reshape takes apart and an offset puts together.
Expr Recomposed(const Expr& expr) {
    for (const ExprTerm& term : expr.terms()) {
        if (term.factors.size() != 1 || term.factors[0]->kind != AtomKind::kMod) {
            continue;
        }
        const Expr &a = term.factors[0]->a, &b = term.factors[0]->b;
        const std::optional<int64_t> divisor = b.constant();
        if (!divisor || *divisor < 2) {
            continue;
        }
        const Expr quotient = term.coefficient * b * FloorDiv(a, b);
        const Expr rest = expr - quotient;
        if (quotient.terms().size() == 1 && rest.terms().size() + 1 == expr.terms().size()) {
            return Recomposed(rest - term.coefficient * Mod(a, b) + term.coefficient * a);
        }
    }
    return expr;
}

}  // namespace

Expr Expr::Simplify(const Domain& domain) const {
    // A quotient that is taken apart can leave another one that is simple now.
    constexpr int kMaxIterations = 4;
    Expr result = *this;
    for (int i = 0; i < kMaxIterations && !result.is_constant(); ++i) {
        Expr next = Recomposed(SimplifyOnce(result, domain));
        if (next == result) {
            break;
        }
        result = std::move(next);
    }
    return result;
}

}  // namespace fornax::graph
