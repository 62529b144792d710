// Quotients, remainders and low bits of sums: what is a multiple of the divisor comes out, what
// stays below a common divisor goes, and only the rest becomes a term.
#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/kernel/index/index_algebra.h"

namespace fornax::kernel {

namespace {

constexpr WideInteger kLimit = IndexRange::kLimit;

WideInteger FloorQuotient(WideInteger a, WideInteger by) {
    return a / by - (a % by < 0 ? 1 : 0);
}

IndexRange Quotients(const IndexRange& range, uint64_t by) {
    return {.low = range.low > -kLimit ? FloorQuotient(range.low, by) : -kLimit,
            .high = range.high < kLimit ? FloorQuotient(range.high, by) : kLimit};
}

bool FitsInt64(WideInteger value) {
    return value >= INT64_MIN && value <= INT64_MAX;
}

uint64_t Magnitude(int64_t value) {
    return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

}  // namespace

uint64_t IndexAlgebra::CommonDivisor(const IndexSum::Part& part, uint64_t of) const {
    const uint64_t common = std::gcd(Magnitude(part.factor), of);
    const int more = std::min<int>(term(part.term).zeros, std::countr_zero(of / common));
    return common << more;
}

// A term of its own, for a sum that no rule makes simpler.
IndexExpr IndexAlgebra::Divided(IndexTerm::Kind kind, IndexExpr operand, uint64_t divisor) {
    if (!operand.valid()) {
        return {};
    }
    const IndexSum& whole = sum(operand);
    const uint32_t zeros = TrailingZeros(operand);
    IndexTerm term;
    term.kind = kind;
    term.operand = operand;
    term.divisor = divisor;
    term.axes = whole.axes;
    term.depth = static_cast<uint8_t>(whole.depth + 1);
    if (kind == IndexTerm::Kind::kQuotient) {
        const auto shift = static_cast<uint32_t>(std::countr_zero(divisor));
        term.range = Quotients(whole.range, divisor);
        term.zeros =
            static_cast<uint8_t>(std::has_single_bit(divisor) && zeros > shift ? zeros - shift : 0);
    } else if (kind == IndexTerm::Kind::kRemainder) {
        term.range = {.low = 0, .high = divisor - 1};
        term.zeros =
            static_cast<uint8_t>(std::min(zeros, static_cast<uint32_t>(std::countr_zero(divisor))));
    } else {
        term.range = {.low = 0, .high = (WideInteger{1} << divisor) - 1};
        term.zeros = static_cast<uint8_t>(zeros);
    }
    return OfTerm(Intern(std::move(term)));
}

// Each part of the sum is known to be a multiple, and so is the constant.
IndexExpr IndexAlgebra::ExactQuotient(IndexExpr a, uint64_t by) {
    const IndexSum whole = sum(a);
    IndexExpr result = Constant(static_cast<int64_t>(WideInteger{whole.constant} / by));
    for (const IndexSum::Part& part : whole.parts) {
        const uint64_t common = std::gcd(Magnitude(part.factor), by);
        IndexExpr term = OfTerm(part.term);
        if (common != by) {
            term = QuotientOfTerm(part.term, by / common);
        }
        result =
            Combine(result, term, static_cast<int64_t>(WideInteger{part.factor} / common), kExact);
    }
    return result;
}

IndexExpr IndexAlgebra::QuotientOfTerm(IndexTermId id, uint64_t by) {
    const IndexTerm inner = term(id);
    if (inner.kind == IndexTerm::Kind::kQuotient && !inner.by.valid() &&
        inner.divisor <= (uint64_t{1} << 63) / by) {
        return Quotient(inner.operand, inner.divisor * by);
    }
    if (inner.kind == IndexTerm::Kind::kLowBits && std::has_single_bit(by)) {
        const auto bits = static_cast<uint64_t>(std::countr_zero(by));
        if (bits < inner.divisor) {
            return LowBits(Quotient(inner.operand, by),
                           static_cast<uint32_t>(inner.divisor - bits));
        }
    }
    return Divided(IndexTerm::Kind::kQuotient, OfTerm(id), by);
}

std::optional<IndexAlgebra::Split> IndexAlgebra::SplitAt(IndexExpr a, uint64_t by) {
    const IndexSum whole = sum(a);
    std::vector<uint64_t> divisors;
    for (const IndexSum::Part& part : whole.parts) {
        divisors.push_back(CommonDivisor(part, by));
    }
    std::vector<uint64_t> candidates = divisors;
    std::ranges::sort(candidates, std::greater());
    const auto same = std::ranges::unique(candidates);
    candidates.erase(same.begin(), same.end());
    for (uint64_t divisor : candidates) {
        if (divisor == 1) {
            break;
        }
        IndexSum multiples;
        IndexSum rest;
        for (size_t i = 0; i < whole.parts.size(); ++i) {
            (divisors[i] % divisor == 0 ? multiples : rest).parts.push_back(whole.parts[i]);
        }
        // The constant is taken apart so that the rest begins between 0 and the divisor.
        const IndexRange range = RangeOf(rest);
        if (range.low <= -kLimit || range.high >= kLimit) {
            continue;
        }
        const WideInteger above = FloorQuotient(range.low + whole.constant, divisor) * divisor;
        if (range.high + whole.constant - above >= divisor || !FitsInt64(above) ||
            !FitsInt64(whole.constant - above)) {
            continue;
        }
        multiples.constant = static_cast<int64_t>(above);
        rest.constant = static_cast<int64_t>(whole.constant - above);
        if (!rest.parts.empty() || rest.constant != 0) {
            return Split{Intern(std::move(multiples)), Intern(std::move(rest))};
        }
    }
    return std::nullopt;
}

uint64_t IndexAlgebra::CommonFactor(IndexExpr a, uint64_t by) const {
    const IndexSum& whole = sum(a);
    uint64_t common = std::gcd(Magnitude(whole.constant), by);
    for (const IndexSum::Part& part : whole.parts) {
        common = std::gcd(Magnitude(part.factor), common);
    }
    return common;
}

IndexExpr IndexAlgebra::Quotient(IndexExpr a, uint64_t by) {
    if (!a.valid() || by == 0 || by > uint64_t{1} << 63) {
        return {};
    }
    if (by == 1) {
        return a;
    }
    const IndexSum whole = sum(a);
    const IndexRange quotients = Quotients(whole.range, by);
    if (quotients.low == quotients.high && FitsInt64(quotients.low)) {
        return Constant(static_cast<int64_t>(quotients.low));
    }
    if (const auto split = SplitAt(a, by)) {
        return Quotient(split->multiples, by);
    }
    if (const uint64_t common = CommonFactor(a, by); common != 1) {
        return Quotient(ExactQuotient(a, common), by / common);
    }
    // Multiples of the divisor.
    IndexSum multiples;
    IndexSum rest;
    IndexSum quotient;
    for (const IndexSum::Part& part : whole.parts) {
        const WideInteger times = WideInteger{part.factor} / by;
        if (CommonDivisor(part, by) == by) {
            multiples.parts.push_back(part);
            continue;
        }
        if (times != 0) {
            quotient.parts.push_back({part.term, static_cast<int64_t>(times)});
        }
        rest.parts.push_back({part.term, static_cast<int64_t>(part.factor - times * by)});
    }
    const WideInteger times = FloorQuotient(whole.constant, by);
    quotient.constant = static_cast<int64_t>(times);
    rest.constant = static_cast<int64_t>(whole.constant - times * by);
    if (!multiples.parts.empty() || !quotient.parts.empty() || times != 0) {
        const IndexExpr exact = ExactQuotient(Intern(std::move(multiples)), by);
        const IndexExpr more = Intern(std::move(quotient));
        return Add(Add(exact, more), Quotient(Intern(std::move(rest)), by));
    }
    if (whole.parts.size() == 1 && whole.parts[0].factor == 1) {
        const IndexTerm inner = term(whole.parts[0].term);
        if (whole.constant == 0) {
            return QuotientOfTerm(whole.parts[0].term, by);
        }
        const WideInteger product = WideInteger{inner.divisor} * by;
        const WideInteger more = WideInteger{inner.divisor} * whole.constant;
        if (inner.kind == IndexTerm::Kind::kQuotient && !inner.by.valid() &&
            product <= WideInteger{1} << 63 && FitsInt64(more)) {
            return Quotient(Add(inner.operand, Constant(static_cast<int64_t>(more))),
                            static_cast<uint64_t>(product));
        }
    }
    return Divided(IndexTerm::Kind::kQuotient, a, by);
}

IndexExpr IndexAlgebra::Remainder(IndexExpr a, uint64_t by) {
    if (!a.valid() || by == 0 || by > uint64_t{1} << 63) {
        return {};
    }
    if (std::has_single_bit(by)) {
        const auto bits = static_cast<uint32_t>(std::countr_zero(by));
        return bits == 0 ? Constant(0) : LowBits(a, bits);
    }
    const IndexSum whole = sum(a);
    const IndexRange quotients = Quotients(whole.range, by);
    if (quotients.low == quotients.high && FitsInt64(quotients.low) &&
        FitsInt64(quotients.low * by)) {
        return Subtract(a, Constant(static_cast<int64_t>(quotients.low * by)));
    }
    if (const auto split = SplitAt(a, by)) {
        return Add(Remainder(split->multiples, by), split->rest);
    }
    if (const uint64_t common = CommonFactor(a, by); common != 1) {
        const IndexExpr rest = Remainder(ExactQuotient(a, common), by / common);
        return Scale(rest, static_cast<int64_t>(common), kExact);
    }
    // Factors near 0, of what is no multiple.
    IndexSum rest;
    for (const IndexSum::Part& part : whole.parts) {
        WideInteger factor = WideInteger{part.factor} % by;
        if (factor > WideInteger{by} / 2 || factor < -(WideInteger{by} / 2)) {
            factor += factor > 0 ? -WideInteger{by} : WideInteger{by};
        }
        if (factor != 0 && CommonDivisor(part, by) != by) {
            rest.parts.push_back({part.term, static_cast<int64_t>(factor)});
        }
    }
    rest.constant = static_cast<int64_t>(whole.constant - FloorQuotient(whole.constant, by) * by);
    const IndexExpr reduced = Intern(std::move(rest));
    return reduced == a ? Divided(IndexTerm::Kind::kRemainder, a, by) : Remainder(reduced, by);
}

IndexExpr IndexAlgebra::LowBits(IndexExpr a, uint32_t bits) {
    if (!a.valid()) {
        return {};
    }
    const IndexSum whole = sum(a);
    const WideInteger size = WideInteger{1} << bits;
    const WideInteger first = FloorQuotient(whole.range.low, size);
    if (first == FloorQuotient(whole.range.high, size) && FitsInt64(first * size)) {
        return Subtract(a, Constant(static_cast<int64_t>(first * size)));
    }
    constexpr uint32_t kMostBits = 62;  // of a divisor that is also a factor
    const uint64_t most = uint64_t{1} << std::min(bits, kMostBits);
    if (const auto split = SplitAt(a, most)) {
        return Add(LowBits(split->multiples, bits), split->rest);
    }
    if (const uint64_t common = CommonFactor(a, most); common != 1) {
        const auto zeros = static_cast<uint32_t>(std::countr_zero(common));
        if (zeros == bits) {
            return Constant(0);
        }
        const IndexExpr low = LowBits(ExactQuotient(a, common), bits - zeros);
        return Scale(low, static_cast<int64_t>(common), kExact);
    }
    IndexSum rest = whole;
    std::erase_if(rest.parts, [&](const IndexSum::Part& part) {
        return bits <= kMostBits && CommonDivisor(part, uint64_t{1} << bits) >> bits != 0;
    });
    const IndexExpr reduced = Finish(std::move(rest), bits);
    return reduced == a ? Divided(IndexTerm::Kind::kLowBits, a, bits) : LowBits(reduced, bits);
}

IndexExpr IndexAlgebra::SignedLowBits(IndexExpr a, uint32_t bits) {
    // All numbers of 64 bits with a sign are those that a constant can be.
    if (!a.valid() || (bits == 64 && !range(a).Within(INT64_MIN, INT64_MAX))) {
        return {};
    }
    if (bits == 64) {
        return a;
    }
    const IndexExpr half = Constant(int64_t{1} << (bits - 1));
    return Subtract(LowBits(Add(a, half), bits), half);
}

IndexExpr IndexAlgebra::DividedBy(IndexTerm::Kind kind,
                                  IndexExpr a,
                                  IndexExpr by,
                                  uint64_t max_if_zero) {
    if (!a.valid() || !by.valid() || range(by).low < 0 || range(a).low < 0) {
        return {};
    }
    const bool rest = kind == IndexTerm::Kind::kRemainder;
    if (const auto divisor = AsConstant(by)) {
        if (*divisor == 0) {
            return {};
        }
        const auto number = static_cast<uint64_t>(*divisor);
        return rest ? Remainder(a, number) : Quotient(a, number);
    }
    const IndexRange& divisors = range(by);
    if (range(a).high < divisors.low) {
        return rest ? a : Constant(0);
    }
    IndexTerm term;
    term.kind = kind;
    term.operand = a;
    term.by = by;
    term.divisor = max_if_zero;
    term.axes = sum(a).axes | sum(by).axes;
    term.axes |= UnevenIf(term.axes);
    term.depth = static_cast<uint8_t>(1 + std::max(sum(a).depth, sum(by).depth));
    WideInteger most = rest ? std::min(range(a).high, divisors.high - 1)
                            : range(a).high / std::max<WideInteger>(1, divisors.low);
    if (divisors.low == 0) {
        most = std::max<WideInteger>(most, max_if_zero);
    }
    term.range = {.low = 0, .high = range(a).high < kLimit ? most : kLimit};
    return OfTerm(Intern(std::move(term)));
}

}  // namespace fornax::kernel
