// Sums of products, with the simplest form of each function that ranges allow.
#include "compiler/graph/c/index_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/c/element_text.h"

namespace fornax::graph::c {

using loop::ScalarId;

namespace {

// Numbers up to this may be added and multiplied by small ones in 64 bits.
constexpr int64_t kNarrow = int64_t{1} << 61;

bool IsNarrow(const Range& range) {
    return range.low >= -kNarrow && range.high <= kNarrow;
}

Range RangeOfType(ElementType type) {
    if (type == ElementType::kBool) {
        return {0, 1};
    }
    const uint32_t bits = BitsOf(type);
    if (!IsInteger(type) || bits == 64) {
        return {};
    }
    return IsSigned(type) ? Range{-(int64_t{1} << (bits - 1)), (int64_t{1} << (bits - 1)) - 1}
                          : Range{0, (int64_t{1} << bits) - 1};
}

class Substituter {
  public:
    explicit Substituter(const Bindings& sizes) {
        for (const auto& [symbol, value] : sizes) {
            values_.emplace(symbol, Expr(value));
        }
    }

    void Apply(Expr& expr) const { expr = expr.Substitute(values_); }
    void Apply(std::vector<Expr>& exprs) const {
        for (Expr& expr : exprs) {
            Apply(expr);
        }
    }
    void Apply(std::vector<loop::Loop>& loops) const {
        for (loop::Loop& loop : loops) {
            Apply(loop.extent);
        }
    }
    void Apply(std::vector<loop::Buffer>& buffers) const {
        for (loop::Buffer& buffer : buffers) {
            Apply(buffer.type.shape.mutable_dims());
        }
    }
    void Apply(std::vector<loop::Store>& stores) const {
        for (loop::Store& store : stores) {
            Apply(store.index);
        }
    }
    void Apply(loop::ScalarNode& node) const {
        std::visit([&](auto& value) { In(value); }, node.value);
    }

  private:
    void In(loop::Load& load) const { Apply(load.index); }
    void In(loop::Index& index) const { Apply(index.value); }
    void In(loop::InRange& range) const {
        Apply(range.value);
        Apply(range.extent);
    }
    void In(loop::Reduce& reduce) const { Apply(reduce.loops); }
    void In(loop::ArgReduce& reduce) const { Apply(reduce.loop.extent); }
    void In(auto&) const {}

    std::map<Symbol, Expr> values_;
};

}  // namespace

loop::Kernel WithSizes(const loop::Kernel& kernel, const Bindings& sizes) {
    loop::Kernel fixed = kernel;
    const Substituter substituter(sizes);
    substituter.Apply(fixed.buffers);
    substituter.Apply(fixed.locals);
    substituter.Apply(fixed.parallel);
    substituter.Apply(fixed.sequential);
    substituter.Apply(fixed.stores);
    for (loop::ScalarNode& node : fixed.scalars) {
        substituter.Apply(node);
    }
    for (loop::Phase& phase : fixed.phases) {
        substituter.Apply(phase.lanes);
        substituter.Apply(phase.stores);
    }
    fixed.sizes.clear();
    return fixed;
}

IndexText::IndexText(const loop::Kernel& kernel, const loop::Scope& scope) {
    for (size_t i = 0; i < kernel.scalars.size(); ++i) {
        const Range range = RangeOfScalar(kernel, ScalarId(i));
        if (range.low != INT64_MIN || range.high != INT64_MAX) {
            domain_.ranges.emplace(loop::SymbolOfScalar(ScalarId(i)), range);
        }
    }
    for (const loop::Loop& loop : scope.variables) {
        domain_.AddVariable(loop.variable, loop.extent);
    }
}

Range IndexText::RangeOfScalar(const loop::Kernel& kernel, ScalarId id) const {
    const loop::ScalarNode& node = kernel[id];
    const Range of_type = RangeOfType(node.type);
    if (const auto* cast = std::get_if<loop::Cast>(&node.value)) {
        const Range argument = RangeOfType(kernel[cast->argument].type);
        const bool is_kept = argument.low >= of_type.low && argument.high <= of_type.high;
        return is_kept && !IsFloat(kernel[cast->argument].type) ? argument : of_type;
    }
    if (const auto* constant = std::get_if<loop::Constant>(&node.value);
        constant != nullptr && IsInteger(node.type) && node.type != ElementType::kU64) {
        return {constant->value.integer, constant->value.integer};
    }
    return of_type;
}

std::string IndexText::Name(const Symbol& symbol) const {
    const std::string& name = symbol.name();
    const auto is_simple = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    if (const std::optional<ScalarId> scalar = loop::ScalarOfSymbol(symbol)) {
        const bool in_lanes =
            scope_of_lanes_ != nullptr && (scope_of_lanes_->free[scalar->value()] & lanes_) != 0;
        return fmt::format("v{}{}", scalar->value(), in_lanes ? "[lane]" : "");
    }
    // Loop variables begin with '$'; what C does not have in a name is written as its number.
    const bool is_plain = name.size() > 2 &&
                          name.find_first_not_of("0123456789", 2) == std::string::npos &&
                          std::string_view("irs").find(name[1]) != std::string_view::npos;
    std::string text = is_plain ? "" : "x_";
    for (const char c : name.substr(1)) {
        text += is_simple(c) ? std::string(1, c) : fmt::format("_{}_", static_cast<int>(c));
    }
    if (scope_of_lanes_ != nullptr) {
        const std::optional<size_t> variable = scope_of_lanes_->Find(symbol);
        if (variable && (lanes_ >> *variable & 1) != 0) {
            return fmt::format("({} + lane)", text);
        }
    }
    return text;
}

// A number from memory by itself is what it is; with anything else it may leave 64 bits.
bool IndexText::IsWide(const Expr& expr) const {
    const bool is_symbol = expr.constant_part() == 0 && expr.terms().size() == 1 &&
                           expr.terms()[0].coefficient == 1 && expr.terms()[0].factors.size() == 1;
    if (!is_symbol && !IsNarrow(expr.Bounds(domain_.ranges))) {
        return true;
    }
    for (const ExprTerm& term : expr.terms()) {
        for (const AtomRef& atom : term.factors) {
            if (atom->kind != AtomKind::kSymbol && (IsWide(atom->a) || IsWide(atom->b))) {
                return true;
            }
        }
        // The parts of a sum may be large where the sum is not.
        Expr part(1);
        for (const AtomRef& atom : term.factors) {
            if (atom->kind == AtomKind::kSymbol) {
                part *= Expr(*atom->symbol);
            }
        }
        if (!is_symbol && !IsNarrow((part * term.coefficient).Bounds(domain_.ranges))) {
            return true;
        }
    }
    return false;
}

std::optional<std::string> IndexText::Write(const Expr& expr, int64_t otherwise) const {
    const Expr simple = Simplified(expr);
    const bool wide = IsWide(simple);
    bool ok = true;
    std::string text = Sum(simple, wide, ok);
    if (!ok) {
        return std::nullopt;
    }
    return wide ? fmt::format("fx_narrow({}, {})", text, IntegerText(otherwise)) : text;
}

std::string IndexText::Sum(const Expr& expr, bool wide, bool& ok) const {
    std::string text;
    size_t parts = 0;
    for (const ExprTerm& term : expr.terms()) {
        const bool is_negative = term.coefficient < 0 && term.coefficient != INT64_MIN;
        const int64_t magnitude = is_negative ? -term.coefficient : term.coefficient;
        std::string product = magnitude == 1 ? "" : IntegerText(magnitude);
        for (const AtomRef& atom : term.factors) {
            product += (product.empty() ? "" : " * ") + Atom(*atom, wide, ok);
        }
        text += is_negative ? (parts == 0 ? "-" : " - ") : (parts == 0 ? "" : " + ");
        text += product;
        ++parts;
    }
    const int64_t constant = expr.constant_part();
    if (parts == 0) {
        return IntegerText(constant);
    }
    if (constant > 0) {
        text += fmt::format(" + {}", IntegerText(constant));
    } else if (constant < 0) {
        text +=
            constant == INT64_MIN ? " + INT64_MIN" : fmt::format(" - {}", IntegerText(-constant));
    }
    const bool is_one_atom = parts == 1 && constant == 0 && expr.terms()[0].coefficient == 1 &&
                             expr.terms()[0].factors.size() == 1;
    return is_one_atom ? text : "(" + text + ")";
}

std::string IndexText::Atom(const ExprAtom& atom, bool wide, bool& ok) const {
    if (atom.kind == AtomKind::kSymbol) {
        const bool is_scalar = loop::ScalarOfSymbol(*atom.symbol).has_value();
        return fmt::format("{}{}",
                           wide        ? "(fx_wide)"
                           : is_scalar ? "(int64_t)"
                                       : "",
                           Name(*atom.symbol));
    }
    const std::string a = Sum(atom.a, wide, ok), b = Sum(atom.b, wide, ok);
    const std::string_view prefix = wide ? "fx_wide_" : "fx_";
    if (atom.kind == AtomKind::kProduct) {
        return fmt::format("({} * {})", wide ? "(fx_wide)" + a : a, b);
    }
    if (atom.kind == AtomKind::kMin || atom.kind == AtomKind::kMax) {
        const bool least = atom.kind == AtomKind::kMin;
        return fmt::format("{}{}{}({}, {})", prefix, least ? "least" : "greatest",
                           wide ? "" : "_index", a, b);
    }
    const Range divisor = atom.b.Bounds(domain_.ranges);
    ok = ok && (divisor.low > 0 || divisor.high < 0);
    const bool quotient = atom.kind == AtomKind::kFloorDiv;
    if (divisor.low > 0 && domain_.IsNotNegative(atom.a)) {
        return fmt::format("({} {} {})", a, quotient ? "/" : "%", b);
    }
    return fmt::format("{}floor_{}({}, {})", prefix, quotient ? "div" : "mod", a, b);
}

}  // namespace fornax::graph::c
