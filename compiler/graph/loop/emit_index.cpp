// Index expressions as integer arithmetic (emit_index.h).
#include "compiler/graph/loop/emit_index.h"

#include <algorithm>

#include <fmt/format.h>

namespace fornax::graph::loop {

using spv::Op;

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

void IndexCode::Bind(const Symbol& symbol, const Expr& extent, Id value) {
    domain_.AddVariable(symbol, extent);
    point_.Bind(symbol, value);
}

void IndexCode::Unbind(std::span<const Loop> loops) {
    for (const Loop& loop : loops) {
        point_.Unbind(loop.variable);
    }
}

Ids IndexCode::VariablesAt(std::span<const Loop> loops, Id index) {
    Ids variables(loops.size());
    for (size_t i = loops.size(); i-- > 0;) {
        const Id extent = Emit(loops[i].extent);
        variables[i] = i == 0 ? index : b_.UMod(index, extent);
        index = i == 0 ? index : b_.UDiv(index, extent);
    }
    return variables;
}

void IndexCode::BindFromIndex(std::span<const Loop> loops, Id index) {
    for (size_t i = loops.size(); i-- > 0;) {
        const Id extent = Emit(loops[i].extent);
        const Id value = i == 0 ? index : b_.UMod(index, extent);
        index = i == 0 ? index : b_.UDiv(index, extent);
        Bind(loops[i].variable, loops[i].extent, value);
    }
}

// --- Arithmetic ----------------------------------------------------------------------------------

std::vector<ExprTerm> IndexCode::ByDepth(const Expr& expr) const {
    std::map<size_t, std::vector<ExprTerm>> terms;
    for (const ExprTerm& term : expr.terms()) {
        size_t depth = 0;
        for (const AtomRef& atom : term.factors) {
            depth = std::max(depth, point_.DepthOf(AtomExpr(*atom)));
        }
        terms[depth].push_back(term);
    }
    std::vector<ExprTerm> sorted;
    for (const auto& [depth, of_depth] : terms) {
        sorted.insert(sorted.end(), of_depth.begin(), of_depth.end());
    }
    return sorted;
}

Id IndexCode::Emit(const Expr& expr) {
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
Expr IndexCode::GreatestMagnitude(const Expr& expr) const {
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

void IndexCode::CheckNarrow(const Expr& expr) {
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

std::vector<Expr> IndexCode::Limits() const {
    std::vector<Expr> limits = limits_;
    std::sort(limits.begin(), limits.end(),
              [](const Expr& a, const Expr& b) { return Expr::Compare(a, b) < 0; });
    limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
    return limits;
}

Id IndexCode::EmitAtom(const ExprAtom& atom) {
    switch (atom.kind) {
        case AtomKind::kSymbol: {
            if (const Id value = point_.ValueOf(*atom.symbol); value != 0) {
                return value;
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
            const Id a = Emit(atom.a), b = Emit(atom.b);
            const Id less = Test(Op::OpSLessThan, a, b);
            return atom.kind == AtomKind::kMin ? b_.Select(less, a, b) : b_.Select(less, b, a);
        }
        case AtomKind::kProduct:
            break;
    }
    return b_.Mul(Emit(atom.a), Emit(atom.b));
}

// A divisor that is 0 gives any value: no point that exists needs it.
Id IndexCode::EmitQuotient(const ExprAtom& atom, bool wide) {
    if (!wide) {
        CheckNarrow(atom.a);
        CheckNarrow(atom.b);
    }
    const bool remainder = atom.kind == AtomKind::kMod;
    const Id a = wide ? EmitWide(atom.a) : Emit(atom.a);
    Id b = wide ? EmitWide(atom.b) : Emit(atom.b);
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

Id IndexCode::EmitExtent(const Expr& extent) {
    const Expr simple = nests_.Simplified(extent);
    if (UsesScalar(simple)) {
        const Id wide = EmitWide(simple);
        const Id type = b_.TypeOf(wide), zero = b_.Constant(type, 0);
        const Id most = b_.Constant(type, INT32_MAX);
        const Id low = b_.Select(Test(Op::OpSLessThan, wide, zero), zero, wide);
        const Id bounded = b_.Select(Test(Op::OpSLessThan, most, low), most, low);
        return b_.Op(Op::OpUConvert, b_.U32(), {bounded});
    }
    CheckNarrow(simple);
    const Id value = Emit(simple);
    if (domain_.IsNotNegative(simple)) {
        return value;
    }
    return b_.Select(Test(Op::OpSLessThan, value, U(0)), U(0), value);
}

// --- 64 bits -------------------------------------------------------------------------------------

Id IndexCode::Widened(Id value) {
    return b_.Op(Op::OpUConvert, b_.Int(64), {value});
}

Id IndexCode::EmitWide(const Expr& expr) {
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

Id IndexCode::EmitWideAtom(const ExprAtom& atom) {
    switch (atom.kind) {
        case AtomKind::kSymbol:
            if (const std::optional<ScalarId> scalar = ScalarOfSymbol(*atom.symbol)) {
                return conversions_.Convert(scalars_->Value(*scalar), kernel_[*scalar].type,
                                            ElementType::kI64, Overflow::kSpecial,
                                            Rounding::kNearestEven);
            }
            return Widened(EmitAtom(atom));  // loop variables and sizes are not negative
        case AtomKind::kFloorDiv:
        case AtomKind::kMod:
            return EmitQuotient(atom, true);
        case AtomKind::kMin:
        case AtomKind::kMax: {
            const Id a = EmitWide(atom.a), b = EmitWide(atom.b);
            const Id less = Test(Op::OpSLessThan, a, b);
            return atom.kind == AtomKind::kMin ? b_.Select(less, a, b) : b_.Select(less, b, a);
        }
        case AtomKind::kProduct:
            break;
    }
    return b_.Mul(EmitWide(atom.a), EmitWide(atom.b));
}

// --- Accesses ------------------------------------------------------------------------------------

Access IndexCode::AccessOf(BufferId buffer, const std::vector<Expr>& index) {
    const Shape& shape = kernel_[buffer].type.shape;
    Access access;
    access.offset = nests_.Offset(buffer, index);
    Expr stride(1);
    for (size_t axis = shape.rank(); axis-- > 0;) {
        const Expr extent = shape[axis];
        if (!UsesScalar(index[axis])) {
            // Where loops were collapsed, ranges of the kernel's variables are tighter than those
            // of the quotients that replace them.
            const Expr simple = nests_.Simplified(index[axis]);
            if (!nests_.Proven(index[axis].Simplify(domain_), extent) &&
                !nests_.Proven(simple, extent)) {
                access.checks.emplace_back(simple, extent);
            }
        } else {
            const std::vector<Symbol> symbols = index[axis].Symbols();
            Id value = 0;
            if (index[axis] == Expr(symbols[0])) {
                const ScalarId scalar = *ScalarOfSymbol(symbols[0]);
                value = scalars_->Value(scalar);
                value = NarrowOf(value).value_or(value);
            } else {
                value = EmitWide(nests_.Simplified(index[axis]));
            }
            const bool wide = b_.BitsOf(b_.TypeOf(value)) == 64;
            const Id bound = EmitSimplified(extent);
            const Id inside = b_.ULess(value, wide ? Widened(bound) : bound);
            access.inside = access.inside == 0 ? inside : b_.And(access.inside, inside);
            const Symbol opaque(fmt::format("$ x{}", opaque_++));
            Bind(opaque, extent, wide ? b_.Op(Op::OpUConvert, b_.U32(), {value}) : value);
            access.offset += Expr(opaque) * stride;
        }
        stride *= extent;
    }
    access.offset = nests_.Simplified(access.offset);
    return access;
}

// Unsigned, so one comparison a dimension.
Id IndexCode::EmitChecks(const Access& access) {
    Id inside = access.inside == 0 ? b_.True() : access.inside;
    for (const auto& [index, extent] : access.checks) {
        CheckNarrow(index);
        inside = b_.And(inside, b_.ULess(Emit(index), EmitSimplified(extent)));
    }
    return inside;
}

Id IndexCode::EmitInRange(const InRange& range) {
    if (!UsesScalar(range.value) && !UsesScalar(range.extent)) {
        const Expr value = nests_.Simplified(range.value), extent = nests_.Simplified(range.extent);
        if (nests_.Proven(value, extent)) {
            return b_.True();
        }
        if (nests_.FitsI32(value) && nests_.FitsI32(extent) && domain_.IsNotNegative(extent)) {
            return b_.ULess(Emit(value), Emit(extent));
        }
    }
    const Id value = EmitWide(nests_.Simplified(range.value));
    const Id extent = EmitWide(nests_.Simplified(range.extent));
    const Id zero = b_.Constant(b_.Int(64), 0);
    return b_.And(Test(Op::OpSGreaterThanEqual, value, zero), Test(Op::OpSLessThan, value, extent));
}

}  // namespace fornax::graph::loop
