// Expressions as integer arithmetic, and which loops can be one.
//
// Offsets are u32 and computed modulo 2^32, which is exact for what is inside of a buffer; only
// dividends and what is compared must not wrap. Terms are added up from the outermost loop's
// variables to the innermost one's, so that what a loop does not change is computed before it.
#include <algorithm>

#include <fmt/format.h>

#include "compiler/graph/loop/emitter.h"

namespace fornax::graph::loop {

using spv::Op;

bool Emitter::UsesScalar(const Expr& expr) const {
    const std::vector<Symbol> symbols = expr.Symbols();
    return std::any_of(symbols.begin(), symbols.end(),
                       [](const Symbol& symbol) { return ScalarOfSymbol(symbol).has_value(); });
}

bool Emitter::Proven(const Expr& index, const Expr& extent) const {
    return domain_.IsNotNegative(index) && domain_.IsLess(index, extent);
}

bool Emitter::FitsI32(const Expr& expr) const {
    const Range range = expr.Bounds(domain_.ranges);
    return range.low >= INT32_MIN && range.high <= INT32_MAX;
}

Expr Emitter::Offset(BufferId buffer, const std::vector<Expr>& index) const {
    const Shape& shape = kernel_[buffer].type.shape;
    Expr offset, stride(1);
    for (size_t axis = shape.rank(); axis-- > 0;) {
        if (!UsesScalar(index[axis])) {
            offset += index[axis] * stride;
        }
        stride *= shape[axis];
    }
    return offset;
}

// --- Collapsing ----------------------------------------------------------------------------------

std::vector<Expr> Emitter::UsesIn(const std::vector<bool>& scalars, std::span<const Store> stores) {
    std::vector<Expr> uses;
    const auto access = [&](BufferId buffer, const std::vector<Expr>& index) {
        uses.push_back(Simplified(Offset(buffer, index)));
        for (size_t axis = 0; axis < index.size(); ++axis) {
            const Expr simple = Simplified(index[axis]);
            if (!Proven(simple, kernel_[buffer].type.shape[axis])) {
                uses.push_back(simple);
            }
        }
    };
    for (size_t i = 0; i < kernel_.scalars.size(); ++i) {
        const ScalarNode& node = kernel_.scalars[i];
        if (!scalars[i]) {
            continue;
        }
        if (const auto* load = std::get_if<Load>(&node.value)) {
            access(load->buffer, load->index);
            continue;
        }
        for (const Expr& expr : ExpressionsOf(node)) {
            uses.push_back(Simplified(expr));
        }
    }
    for (const Store& store : stores) {
        access(store.buffer, store.index);
    }
    return uses;
}

Nest Emitter::Collapse(std::span<const Loop> loops, std::span<const Expr> users) {
    Nest nest;
    std::vector<Expr> uses(users.begin(), users.end());
    for (size_t i = loops.size(); i-- > 0;) {
        const Loop& outer = loops[i];
        nest.variables |= VariableSet{1} << *scope_.Find(outer.variable);
        if (outer.extent == Expr(1) && (i > 0 || !nest.loops.empty())) {
            continue;  // its variable is 0, which simplifying knows
        }
        if (!nest.loops.empty()) {
            const Loop inner = nest.loops.back();
            const Symbol merged(fmt::format("$ m{}", merge_count_++));
            const std::map<Symbol, Expr> substitution = {
                {inner.variable, Expr(merged) - inner.extent * Expr(outer.variable)}};
            std::vector<Expr> after;
            for (const Expr& use : uses) {
                after.push_back(use.Substitute(substitution));
                if (after.back().Uses(outer.variable)) {
                    break;
                }
            }
            if (after.empty() || !after.back().Uses(outer.variable)) {
                uses = std::move(after);
                merges_.push_back({outer.variable, inner.variable, merged, inner.extent});
                nest.loops.back() = {merged, outer.extent * inner.extent};
                domain_.AddVariable(merged, nest.loops.back().extent);
                continue;
            }
        }
        nest.loops.push_back(outer);
    }
    std::reverse(nest.loops.begin(), nest.loops.end());
    return nest;
}

Expr Emitter::UnmergedValue(const Symbol& symbol) const {
    for (const Merge& merge : merges_) {
        if (merge.inner == symbol) {
            return Mod(UnmergedValue(merge.merged), merge.inner_extent);
        }
        if (merge.outer == symbol) {
            return FloorDiv(UnmergedValue(merge.merged), merge.inner_extent);
        }
    }
    return {symbol};
}

Expr Emitter::Simplified(const Expr& expr) const {
    Expr result = expr.Simplify(domain_);
    bool changed = false;
    for (const Merge& merge : merges_) {
        if (result.Uses(merge.inner)) {
            result = result.Substitute(
                {{merge.inner, Expr(merge.merged) - merge.inner_extent * Expr(merge.outer)}});
            changed = true;
        }
    }
    // What is left of an outer variable was not a use that Collapse() has seen.
    for (const Merge& merge : merges_) {
        if (result.Uses(merge.outer)) {
            result = result.Substitute({{merge.outer, UnmergedValue(merge.outer)}});
            changed = true;
        }
    }
    return changed ? result.Simplify(domain_) : result;
}

// --- Arithmetic ----------------------------------------------------------------------------------

void Emitter::Bind(const Symbol& symbol, const Expr& extent, Id value) {
    domain_.AddVariable(symbol, extent);
    bound_[symbol] = {value, scopes_.size()};
}

void Emitter::Unbind(const Symbol& symbol) {
    bound_.erase(symbol);
}

size_t Emitter::DepthOf(const Expr& expr) const {
    size_t depth = 0;
    for (const Symbol& symbol : expr.Symbols()) {
        const auto found = bound_.find(symbol);
        depth = std::max(depth, found == bound_.end() ? scopes_.size() : found->second.depth);
    }
    return depth;
}

namespace {

Expr AtomExpr(const ExprAtom& atom) {
    switch (atom.kind) {
        case AtomKind::kSymbol:
            return {*atom.symbol};
        case AtomKind::kProduct:
            return atom.a * atom.b;
        default:
            return atom.a + atom.b;  // for its symbols
    }
}

}  // namespace

std::vector<ExprTerm> Emitter::ByDepth(const Expr& expr) const {
    std::map<size_t, std::vector<ExprTerm>> terms;
    for (const ExprTerm& term : expr.terms()) {
        size_t depth = 0;
        for (const AtomRef& atom : term.factors) {
            depth = std::max(depth, DepthOf(AtomExpr(*atom)));
        }
        terms[depth].push_back(term);
    }
    std::vector<ExprTerm> sorted;
    for (const auto& [depth, of_depth] : terms) {
        sorted.insert(sorted.end(), of_depth.begin(), of_depth.end());
    }
    return sorted;
}

Id Emitter::EmitExpr(const Expr& expr) {
    Id sum = U(0);
    for (const ExprTerm& term : ByDepth(expr)) {
        Id product = 0;
        for (const AtomRef& atom : term.factors) {
            const Id factor = EmitAtom(*atom);
            product = product == 0 ? factor : b_.Mul(product, factor);
        }
        // A difference is one instruction.
        const bool subtract = term.coefficient < 0 && term.coefficient != INT64_MIN;
        const int64_t magnitude = subtract ? -term.coefficient : term.coefficient;
        product = b_.Mul(product, U(static_cast<uint32_t>(magnitude)));
        sum = subtract ? b_.Sub(sum, product) : b_.Add(sum, product);
    }
    return b_.Add(sum, U(static_cast<uint32_t>(expr.constant_part())));
}

// A bound of |expr| for all values of loop variables, in terms of the sizes.
Expr Emitter::GreatestMagnitude(const Expr& expr) const {
    const auto magnitude = [](int64_t value) {
        return value == INT64_MIN ? INT64_MAX : std::abs(value);
    };
    Expr greatest(magnitude(expr.constant_part()));
    for (const ExprTerm& term : expr.terms()) {
        Expr product(magnitude(term.coefficient));
        for (const AtomRef& atom : term.factors) {
            switch (atom->kind) {
                case AtomKind::kSymbol: {
                    const auto extent = domain_.extents.find(*atom->symbol);
                    product *= extent == domain_.extents.end() ? Expr(*atom->symbol)
                                                               : GreatestMagnitude(extent->second);
                    break;
                }
                case AtomKind::kFloorDiv:
                    product *= FloorDiv(GreatestMagnitude(atom->a),
                                        Max(atom->b.is_constant() ? atom->b : Expr(1), 1)) +
                               1;
                    break;
                case AtomKind::kMod:
                    product *= GreatestMagnitude(atom->b);
                    break;
                case AtomKind::kMin:
                case AtomKind::kMax:
                    product *= Max(GreatestMagnitude(atom->a), GreatestMagnitude(atom->b));
                    break;
                case AtomKind::kProduct:
                    product *= GreatestMagnitude(atom->a) * GreatestMagnitude(atom->b);
                    break;
            }
        }
        greatest += product;
    }
    return greatest;
}

void Emitter::CheckNarrow(const Expr& expr) {
    const Range range = expr.Bounds(domain_.ranges);
    const bool fits = range.low >= 0 ? range.high <= UINT32_MAX
                                     : range.low >= INT32_MIN && range.high <= INT32_MAX;
    if (fits) {
        return;
    }
    const Expr greatest = GreatestMagnitude(expr);
    if (const std::optional<int64_t> constant = greatest.constant();
        constant && *constant > INT32_MAX) {
        Reject(fmt::format("the index {} is as great as {}, more than {}", expr.ToString(),
                           *constant, INT32_MAX));
        return;
    }
    limits_.push_back(greatest);
}

Id Emitter::EmitAtom(const ExprAtom& atom) {
    switch (atom.kind) {
        case AtomKind::kSymbol: {
            const auto found = bound_.find(*atom.symbol);
            if (found != bound_.end()) {
                return found->second.value;
            }
            return Reject(fmt::format("{} has no value here", atom.symbol->name()));
        }
        case AtomKind::kFloorDiv:
        case AtomKind::kMod:
            return EmitQuotient(atom, false);
        case AtomKind::kMin:
        case AtomKind::kMax: {
            CheckNarrow(atom.a);
            CheckNarrow(atom.b);
            const Id a = EmitExpr(atom.a), b = EmitExpr(atom.b);
            const Id less = Test(Op::OpSLessThan, a, b);
            return atom.kind == AtomKind::kMin ? b_.Select(less, a, b) : b_.Select(less, b, a);
        }
        case AtomKind::kProduct:
            break;
    }
    return b_.Mul(EmitExpr(atom.a), EmitExpr(atom.b));
}

// A divisor that is 0 gives any value: no point that exists needs it.
Id Emitter::EmitQuotient(const ExprAtom& atom, bool wide) {
    if (!wide) {
        CheckNarrow(atom.a);
        CheckNarrow(atom.b);
    }
    const bool remainder = atom.kind == AtomKind::kMod;
    const Id a = wide ? EmitWideExpr(atom.a) : EmitExpr(atom.a);
    Id b = wide ? EmitWideExpr(atom.b) : EmitExpr(atom.b);
    const Range divisor = atom.b.Bounds(domain_.ranges);
    const Id type = b_.TypeOf(a), zero = b_.Constant(type, 0), one = b_.Constant(type, 1);
    if (divisor.low <= 0 && divisor.high >= 0) {
        b = b_.Select(Test(Op::OpIEqual, b, zero), one, b);
    }
    if (divisor.low >= 0 && domain_.IsNotNegative(atom.a)) {
        return remainder ? b_.UMod(a, b) : b_.UDiv(a, b);
    }
    // Rounded down: one less where the remainder has another sign than the divisor.
    const Id quotient = Binary(Op::OpSDiv, a, b);
    const Id rest = b_.Sub(a, b_.Mul(quotient, b));
    const Id other_sign = Test(Op::OpSLessThan, Binary(Op::OpBitwiseXor, rest, b), zero);
    const Id adjust = b_.And(other_sign, Test(Op::OpINotEqual, rest, zero));
    return remainder ? b_.Select(adjust, b_.Add(rest, b), rest)
                     : b_.Select(adjust, b_.Sub(quotient, one), quotient);
}

// --- 64 bits -------------------------------------------------------------------------------------

Id Emitter::Widened(Id value) {
    return b_.Op(Op::OpUConvert, b_.Int(64), {value});
}

Id Emitter::EmitWideExpr(const Expr& expr) {
    if (!target_.int64) {
        return Reject("the device has no 64-bit integers");
    }
    const Id type = b_.Int(64);
    Id sum = b_.Constant(type, 0);
    for (const ExprTerm& term : ByDepth(expr)) {
        Id product = b_.Constant(type, static_cast<uint64_t>(term.coefficient));
        for (const AtomRef& atom : term.factors) {
            product = b_.Mul(product, EmitWideAtom(*atom));
        }
        sum = b_.Add(sum, product);
    }
    return b_.Add(sum, b_.Constant(type, static_cast<uint64_t>(expr.constant_part())));
}

Id Emitter::EmitWideAtom(const ExprAtom& atom) {
    switch (atom.kind) {
        case AtomKind::kSymbol:
            if (const std::optional<ScalarId> scalar = ScalarOfSymbol(*atom.symbol)) {
                return conversions_.Convert(Value(*scalar), kernel_[*scalar].type,
                                            ElementType::kI64, Overflow::kSpecial,
                                            Rounding::kNearestEven);
            }
            return Widened(EmitAtom(atom));  // loop variables and sizes are not negative
        case AtomKind::kFloorDiv:
        case AtomKind::kMod:
            return EmitQuotient(atom, true);
        case AtomKind::kMin:
        case AtomKind::kMax: {
            const Id a = EmitWideExpr(atom.a), b = EmitWideExpr(atom.b);
            const Id less = Test(Op::OpSLessThan, a, b);
            return atom.kind == AtomKind::kMin ? b_.Select(less, a, b) : b_.Select(less, b, a);
        }
        case AtomKind::kProduct:
            break;
    }
    return b_.Mul(EmitWideExpr(atom.a), EmitWideExpr(atom.b));
}

// --- Accesses ------------------------------------------------------------------------------------

Emitter::Access Emitter::AccessOf(BufferId buffer, const std::vector<Expr>& index) {
    const Shape& shape = kernel_[buffer].type.shape;
    Access access;
    access.offset = Offset(buffer, index);
    Expr stride(1);
    for (size_t axis = shape.rank(); axis-- > 0;) {
        const Expr extent = shape[axis];
        if (!UsesScalar(index[axis])) {
            // Where loops were collapsed, ranges of the kernel's variables are tighter than those
            // of the quotients that replace them.
            const Expr simple = Simplified(index[axis]);
            if (!Proven(index[axis].Simplify(domain_), extent) && !Proven(simple, extent)) {
                access.checks.emplace_back(simple, extent);
            }
        } else {
            const std::vector<Symbol> symbols = index[axis].Symbols();
            Id value = 0;
            if (index[axis] == Expr(symbols[0])) {
                const ScalarId scalar = *ScalarOfSymbol(symbols[0]);
                value = Value(scalar);
                value = NarrowOf(value).value_or(value);
            } else {
                value = EmitWideExpr(Simplified(index[axis]));
            }
            const bool wide = b_.BitsOf(b_.TypeOf(value)) == 64;
            const Id bound = EmitExpr(Simplified(extent));
            const Id inside = b_.ULess(value, wide ? Widened(bound) : bound);
            access.inside = access.inside == 0 ? inside : b_.And(access.inside, inside);
            const Symbol opaque(fmt::format("$ x{}", opaque_++));
            Bind(opaque, extent, wide ? b_.Op(Op::OpUConvert, b_.U32(), {value}) : value);
            access.offset += Expr(opaque) * stride;
        }
        stride *= extent;
    }
    access.offset = Simplified(access.offset);
    return access;
}

// Unsigned, so one comparison a dimension.
Id Emitter::EmitChecks(const Access& access) {
    Id inside = access.inside == 0 ? b_.True() : access.inside;
    for (const auto& [index, extent] : access.checks) {
        CheckNarrow(index);
        inside = b_.And(inside, b_.ULess(EmitExpr(index), EmitExpr(Simplified(extent))));
    }
    return inside;
}

Id Emitter::EmitInRange(const InRange& range) {
    if (!UsesScalar(range.value) && !UsesScalar(range.extent)) {
        const Expr value = Simplified(range.value), extent = Simplified(range.extent);
        if (Proven(value, extent)) {
            return b_.True();
        }
        if (FitsI32(value) && FitsI32(extent) && domain_.IsNotNegative(extent)) {
            return b_.ULess(EmitExpr(value), EmitExpr(extent));
        }
    }
    const Id value = EmitWideExpr(Simplified(range.value));
    const Id extent = EmitWideExpr(Simplified(range.extent));
    const Id zero = b_.Constant(b_.Int(64), 0);
    return b_.And(Test(Op::OpSGreaterThanEqual, value, zero), Test(Op::OpSLessThan, value, extent));
}

}  // namespace fornax::graph::loop
