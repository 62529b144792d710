// Index arithmetic as text, and with other symbols.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/kernel/index/index_algebra.h"

namespace fornax::kernel {

namespace {

// Terms share what they are made of, so that a text may be much longer than what is stored.
constexpr size_t kMaxText = 2000;

std::string SymbolText(const IndexSymbol& symbol) {
    switch (symbol.kind) {
        case IndexSymbol::Kind::kBuiltin:
            return ir::BuiltinName(static_cast<ir::BuiltinId>(symbol.number));
        case IndexSymbol::Kind::kIteration:
            return "iteration@" + std::to_string(symbol.number);
        case IndexSymbol::Kind::kValue:
        case IndexSymbol::Kind::kAssumed:
            break;
    }
    return "%" + std::to_string(symbol.number);
}

}  // namespace

std::string IndexAlgebra::Text(IndexTermId id) const {
    const IndexTerm& term = this->term(id);
    switch (term.kind) {
        case IndexTerm::Kind::kSymbol:
            return SymbolText(term.symbol);
        case IndexTerm::Kind::kProduct: {
            std::vector<std::string> factors;
            for (IndexTermId factor : term.factors) {
                factors.push_back(Text(factor));
            }
            std::ranges::sort(factors);
            std::string text;
            for (const std::string& factor : factors) {
                text += (text.empty() ? "" : "*") + factor;
            }
            return text;
        }
        default:
            break;
    }
    auto operand = [&](IndexExpr expr) {
        const IndexSum& whole = sum(expr);
        const bool alone =
            whole.parts.size() == 1 && whole.constant == 0 && whole.parts[0].factor == 1;
        return alone ? Text(expr) : "(" + Text(expr) + ")";
    };
    const char* sign = term.kind == IndexTerm::Kind::kQuotient ? " / " : " % ";
    const std::string by = term.by.valid() ? operand(term.by)
                           : term.kind == IndexTerm::Kind::kLowBits
                               ? "2^" + std::to_string(term.divisor)
                               : std::to_string(term.divisor);
    return "(" + operand(term.operand) + sign + by + ")";
}

std::string IndexAlgebra::Text(IndexExpr expr) const {
    if (!expr.valid()) {
        return "unknown";
    }
    const IndexSum& whole = sum(expr);
    std::string text;
    auto append = [&](bool negative, const std::string& part) {
        text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
        text += part;
    };
    // In an order that does not depend on which expressions were made before.
    std::vector<std::pair<std::string, int64_t>> parts;
    size_t length = 0;
    for (const IndexSum::Part& part : whole.parts) {
        parts.emplace_back(length > kMaxText ? "..." : Text(part.term), part.factor);
        length += parts.back().first.size();
    }
    std::ranges::sort(parts);
    for (const auto& [term, factor] : parts) {
        const auto bits = static_cast<uint64_t>(factor);
        const uint64_t magnitude = factor < 0 ? 0 - bits : bits;
        append(factor < 0, (magnitude == 1 ? "" : std::to_string(magnitude) + "*") + term);
    }
    if (whole.constant != 0 || whole.parts.empty()) {
        const bool negative = whole.constant < 0;
        const auto bits = static_cast<uint64_t>(whole.constant);
        append(negative, std::to_string(negative ? 0 - bits : bits));
    }
    return text;
}

IndexExpr IndexAlgebra::SubstituteIn(IndexTermId id,
                                     const Replacement& replacement,
                                     Replacements& known) {
    if (const auto found = known.find(id); found != known.end()) {
        return found->second;
    }
    // Interning moves what ids lead to.
    const IndexTerm term = this->term(id);
    auto exact = [&](IndexExpr expr) {
        const IndexSum whole = sum(expr);
        IndexExpr result = Constant(whole.constant);
        for (const IndexSum::Part& part : whole.parts) {
            result =
                Combine(result, SubstituteIn(part.term, replacement, known), part.factor, kExact);
        }
        return result;
    };
    IndexExpr result;
    switch (term.kind) {
        case IndexTerm::Kind::kSymbol:
            result = replacement(term.symbol);
            break;
        case IndexTerm::Kind::kProduct:
            result = Constant(1);
            for (IndexTermId factor : term.factors) {
                result = Multiply(result, SubstituteIn(factor, replacement, known));
            }
            break;
        case IndexTerm::Kind::kQuotient:
            result = term.by.valid() ? Quotient(exact(term.operand), exact(term.by), term.divisor)
                                     : Quotient(exact(term.operand), term.divisor);
            break;
        case IndexTerm::Kind::kRemainder:
            result = term.by.valid() ? Remainder(exact(term.operand), exact(term.by), term.divisor)
                                     : Remainder(exact(term.operand), term.divisor);
            break;
        case IndexTerm::Kind::kLowBits:
            result = LowBits(exact(term.operand), static_cast<uint32_t>(term.divisor));
            break;
    }
    known.emplace(id, result);
    return result;
}

IndexExpr IndexAlgebra::Substitute(IndexExpr expr, uint32_t bits, const Replacement& replacement) {
    if (!expr.valid()) {
        return expr;
    }
    Replacements known;
    const IndexSum whole = sum(expr);
    IndexExpr result = Reduce(Constant(whole.constant), bits);
    for (const IndexSum::Part& part : whole.parts) {
        result = Combine(result, SubstituteIn(part.term, replacement, known), part.factor, bits);
    }
    return result;
}

}  // namespace fornax::kernel
