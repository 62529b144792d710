// Integer expressions over named symbols: the sizes of tensors and the indices of kernels.
//
// An Expr is kept in normal form, a constant plus terms that are products of atoms with a
// coefficient:  4 + 3*i0 + batch*i1 - 2*floor(i2 / 7).  Two expressions that are equal as such
// forms compare equal; `stride` of an iteration variable is its coefficient. Atoms are symbols and
// the four functions that do not distribute: floor(a / b), a mod b, min and max. Arithmetic is that
// of int64 and saturates instead of wrapping, so that sizes from hostile files stay sizes.
//
// An Expr is an immutable value, cheap to copy when constant, and safe to read from several
// threads.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fornax::graph {

// A named unknown. Symbols of one name are the same symbol.
class Symbol {
  public:
    explicit Symbol(std::string_view name);
    const std::string& name() const { return *name_; }
    bool operator==(const Symbol&) const = default;
    std::strong_ordering operator<=>(const Symbol& other) const { return *name_ <=> *other.name_; }

  private:
    const std::string* name_;  // interned
};

// The values that an expression may have, both ends included.
struct Range {
    int64_t low = INT64_MIN;
    int64_t high = INT64_MAX;
    bool operator==(const Range&) const = default;
    bool is_one() const { return low == high; }
};

using Bindings = std::map<Symbol, int64_t>;
using Ranges = std::map<Symbol, Range>;
struct Domain;

struct ExprAtom;
using AtomRef = std::shared_ptr<const ExprAtom>;

// A product of atoms, in order, with a coefficient that is not 0.
struct ExprTerm {
    int64_t coefficient = 1;
    std::vector<AtomRef> factors;
};

class Expr {
  public:
    Expr(int64_t constant = 0) : constant_(constant) {}
    Expr(const Symbol& symbol);

    bool is_constant() const { return terms_.empty(); }
    // The value of a constant expression.
    std::optional<int64_t> constant() const;
    int64_t constant_part() const { return constant_; }
    std::span<const ExprTerm> terms() const { return terms_; }

    Expr operator-() const;
    friend Expr operator+(const Expr& a, const Expr& b);
    friend Expr operator-(const Expr& a, const Expr& b) { return a + -b; }
    friend Expr operator*(const Expr& a, const Expr& b);
    Expr& operator+=(const Expr& other) { return *this = *this + other; }
    Expr& operator-=(const Expr& other) { return *this = *this - other; }
    Expr& operator*=(const Expr& other) { return *this = *this * other; }

    // Equality of normal forms: what compares unequal may still have equal values.
    friend bool operator==(const Expr& a, const Expr& b) { return Compare(a, b) == 0; }
    // A total order for tables; it says nothing about values.
    static int Compare(const Expr& a, const Expr& b);

    // The symbols that occur, anywhere.
    std::vector<Symbol> Symbols() const;
    bool Uses(const Symbol& symbol) const;
    // The factor of `symbol` where the expression is linear in it: nullopt if the symbol is also in
    // a function or multiplied with itself.
    std::optional<Expr> Coefficient(const Symbol& symbol) const;
    // The expression without the terms that Coefficient() counts.
    Expr Without(const Symbol& symbol) const;

    Expr Substitute(const std::map<Symbol, Expr>& values) const;
    // Nullopt when a symbol has no value, a divisor is 0, or the result overflows.
    std::optional<int64_t> Evaluate(const Bindings& values) const;
    // The same with the values that `value_of` gives for the atoms of symbols, an optional<int64_t>
    // each.
    template <typename F>
    std::optional<int64_t> EvaluateWith(const F& value_of) const;
    // Bounds of the value when each symbol is within its range; symbols without one may be
    // anything.
    Range Bounds(const Ranges& ranges) const;
    // An expression that is equal in the domain, simpler where that allows: (4*i + j) / 4 is i for
    // j in 0..3.
    Expr Simplify(const Domain& domain) const;

    // "3*i0 + floor(i2, 7) + 4".
    std::string ToString() const;

  private:
    friend class ExprBuilder;
    int64_t constant_ = 0;
    std::vector<ExprTerm> terms_;  // sorted, distinct
};

// What is known of symbols. `extents` says of iteration variables that they are in 0..extent-1,
// where the extent may hold symbols of its own.
struct Domain {
    Ranges ranges;
    std::map<Symbol, Expr> extents;

    void AddVariable(const Symbol& variable, const Expr& extent);
    // Whether 0 <= a, and whether a < b, everywhere; false also when it cannot be told.
    bool IsNotNegative(const Expr& a) const;
    bool IsLess(const Expr& a, const Expr& b) const;
};

// Division that rounds down, and its remainder, which has the sign of the divisor. Dividing by the
// constant 0 gives an expression that does not evaluate.
Expr FloorDiv(const Expr& a, const Expr& b);
Expr Mod(const Expr& a, const Expr& b);
Expr CeilDiv(const Expr& a, const Expr& b);
Expr Min(const Expr& a, const Expr& b);
Expr Max(const Expr& a, const Expr& b);

// kProduct: of two sums that would have too many terms if multiplied out.
enum class AtomKind : uint8_t { kSymbol, kFloorDiv, kMod, kMin, kMax, kProduct };

struct ExprAtom {
    AtomKind kind;
    std::optional<Symbol> symbol;  // of kSymbol
    Expr a, b;                     // of the others
};

int64_t FloorDivide(int64_t a, int64_t b);
int64_t FloorModulo(int64_t a, int64_t b);
// A function of two values; nullopt where it has none, or one that is not of 64 bits.
std::optional<int64_t> EvaluateFunction(AtomKind kind, int64_t a, int64_t b);

template <typename F>
std::optional<int64_t> Expr::EvaluateWith(const F& value_of) const {
    int64_t sum = constant_;
    for (const ExprTerm& term : terms_) {
        int64_t product = term.coefficient;
        for (const AtomRef& atom : term.factors) {
            std::optional<int64_t> value;
            if (atom->kind == AtomKind::kSymbol) {
                value = value_of(*atom);
            } else if (const auto a = atom->a.EvaluateWith(value_of)) {
                if (const auto b = atom->b.EvaluateWith(value_of)) {
                    value = EvaluateFunction(atom->kind, *a, *b);
                }
            }
            if (!value || __builtin_mul_overflow(product, *value, &product)) {
                return std::nullopt;
            }
        }
        if (__builtin_add_overflow(sum, product, &sum)) {
            return std::nullopt;
        }
    }
    return sum;
}

}  // namespace fornax::graph
