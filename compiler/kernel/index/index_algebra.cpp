// Sums and terms of index arithmetic: how they are stored, added and multiplied. Division is in
// index_division.cpp, text in index_text.cpp.
#include "compiler/kernel/index/index_algebra.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "compiler/kernel/ir/evaluate.h"

namespace fornax::kernel {

namespace {

constexpr size_t kMaxFactors = 4;  // of a product

constexpr WideInteger kLimit = IndexRange::kLimit;

uint64_t Mixed(uint64_t hash, uint64_t value) {
    return (hash ^ hash >> 29 ^ value) * 0x9e3779b97f4a7c15u;
}

WideInteger Clamped(WideInteger value) {
    return std::clamp(value, -kLimit, kLimit);
}

// An end of a range, times a number.
WideInteger Times(WideInteger end, WideInteger factor) {
    WideInteger product = 0;
    if (__builtin_mul_overflow(end, factor, &product)) {
        return (end < 0) == (factor < 0) ? kLimit : -kLimit;
    }
    return Clamped(product);
}

// Open ends stay open.
IndexRange Sum(const IndexRange& a, const IndexRange& b) {
    IndexRange sum{.low = -kLimit, .high = kLimit};
    if (a.low > -kLimit && b.low > -kLimit) {
        sum.low = Clamped(a.low + b.low);
    }
    if (a.high < kLimit && b.high < kLimit) {
        sum.high = Clamped(a.high + b.high);
    }
    return sum;
}

IndexRange Product(const IndexRange& a, const IndexRange& b) {
    const auto [low, high] = std::minmax(
        {Times(a.low, b.low), Times(a.low, b.high), Times(a.high, b.low), Times(a.high, b.high)});
    return {.low = low, .high = high};
}

}  // namespace

template <typename Equal>
uint32_t IndexAlgebra::InternTable::Find(uint64_t hash, Equal equal) const {
    uint32_t at = heads_[hash & (heads_.size() - 1)];
    for (; at != UINT32_MAX; at = entries_[at].next) {
        if (entries_[at].hash == hash && equal(entries_[at].id)) {
            return entries_[at].id;
        }
    }
    return UINT32_MAX;
}

void IndexAlgebra::InternTable::Add(uint64_t hash, uint32_t id) {
    if (entries_.size() >= heads_.size()) {
        heads_.assign(heads_.size() * 4, UINT32_MAX);
        for (uint32_t i = 0; i < entries_.size(); ++i) {
            uint32_t& head = heads_[entries_[i].hash & (heads_.size() - 1)];
            entries_[i].next = std::exchange(head, i);
        }
    }
    uint32_t& head = heads_[hash & (heads_.size() - 1)];
    entries_.push_back({hash, id, head});
    head = static_cast<uint32_t>(entries_.size() - 1);
}

IndexRange IndexAlgebra::RangeOf(const IndexSum& sum) const {
    IndexRange range{.low = sum.constant, .high = sum.constant};
    for (const IndexSum::Part& part : sum.parts) {
        const IndexRange factor{.low = part.factor, .high = part.factor};
        range = Sum(range, kernel::Product(term(part.term).range, factor));
    }
    return range;
}

IndexExpr IndexAlgebra::Intern(IndexSum sum) {
    if (sum.parts.size() > kMaxParts) {
        return {};
    }
    uint64_t hash = Mixed(1, static_cast<uint64_t>(sum.constant));
    for (const IndexSum::Part& part : sum.parts) {
        hash = Mixed(Mixed(hash, part.term.value()), static_cast<uint64_t>(part.factor));
    }
    const uint32_t found = sum_ids_.Find(hash, [&](uint32_t id) {
        return sums_[id].constant == sum.constant && sums_[id].parts == sum.parts;
    });
    if (found != UINT32_MAX) {
        return IndexExpr{found};
    }
    const bool is_symbol = sum.parts.size() == 1 && sum.parts[0].factor == 1 &&
                           term(sum.parts[0].term).kind == IndexTerm::Kind::kSymbol;
    if (sums_.size() + terms_.size() >= kMaxNodes && !is_symbol && !sum.parts.empty()) {
        return {};
    }
    sum.range = RangeOf(sum);
    for (const IndexSum::Part& part : sum.parts) {
        sum.axes |= term(part.term).axes;
        sum.depth = std::max(sum.depth, term(part.term).depth);
    }
    const IndexExpr id{static_cast<uint32_t>(sums_.size())};
    sums_.push_back(std::move(sum));
    sum_ids_.Add(hash, id.value());
    return id;
}

IndexTermId IndexAlgebra::Intern(IndexTerm term) {
    if (term.depth > kMaxDepth) {
        return {};
    }
    uint64_t hash = Mixed(static_cast<uint64_t>(term.kind), term.divisor);
    hash = Mixed(Mixed(hash, static_cast<uint64_t>(term.symbol.kind)), term.symbol.number);
    hash = Mixed(Mixed(hash, term.operand.value()), term.by.value());
    for (IndexTermId factor : term.factors) {
        hash = Mixed(hash, factor.value());
    }
    const uint32_t found = term_ids_.Find(hash, [&](uint32_t id) {
        const IndexTerm& other = terms_[id];
        return other.kind == term.kind && other.symbol.kind == term.symbol.kind &&
               other.symbol.number == term.symbol.number && other.operand == term.operand &&
               other.divisor == term.divisor && other.by == term.by &&
               other.factors == term.factors;
    });
    if (found != UINT32_MAX) {
        return IndexTermId{found};
    }
    if (sums_.size() + terms_.size() >= kMaxNodes && term.kind != IndexTerm::Kind::kSymbol) {
        return {};
    }
    const IndexTermId id{static_cast<uint32_t>(terms_.size())};
    terms_.push_back(std::move(term));
    term_ids_.Add(hash, id.value());
    return id;
}

std::optional<int64_t> IndexAlgebra::AsConstant(IndexExpr expr) const {
    if (!expr.valid() || !sum(expr).parts.empty()) {
        return std::nullopt;
    }
    return sum(expr).constant;
}

uint32_t IndexAlgebra::TrailingZeros(IndexExpr expr) const {
    constexpr int kMost = 63;
    const IndexSum& whole = sum(expr);
    int zeros = std::min(kMost, std::countr_zero(static_cast<uint64_t>(whole.constant)));
    for (const IndexSum::Part& part : whole.parts) {
        zeros = std::min(
            zeros, std::countr_zero(static_cast<uint64_t>(part.factor)) + term(part.term).zeros);
    }
    return static_cast<uint32_t>(zeros);
}

IndexExpr IndexAlgebra::Constant(int64_t value) {
    IndexSum sum;
    sum.constant = value;
    return Intern(std::move(sum));
}

IndexExpr IndexAlgebra::Symbol(const IndexSymbol& symbol) {
    IndexTerm term;
    term.symbol = symbol;
    term.range = {.low = 0, .high = symbol.max};
    term.zeros = std::min<uint8_t>(symbol.zeros, 63);
    term.axes = symbol.axes;
    return OfTerm(Intern(std::move(term)));
}

IndexExpr IndexAlgebra::OfTerm(IndexTermId term, int64_t factor) {
    if (!term.valid()) {
        return {};
    }
    IndexSum sum;
    sum.parts.push_back({term, factor});
    return Intern(std::move(sum));
}

// What stands for one or two parts of the sum: what low bits were taken from, where the bits above
// do not matter modulo 2^bits, or what a quotient and its remainder make up. These parts are taken
// out of the sum.
std::optional<IndexAlgebra::Scaled> IndexAlgebra::TakeReplaceable(IndexSum& sum,
                                                                  uint32_t bits) const {
    auto erase = [&](size_t at) {
        sum.parts.erase(sum.parts.begin() + static_cast<std::ptrdiff_t>(at));
    };
    for (size_t i = 0; i < sum.parts.size(); ++i) {
        const int64_t factor = sum.parts[i].factor;
        const IndexTerm& rest = term(sum.parts[i].term);
        const bool low = rest.kind == IndexTerm::Kind::kLowBits;
        if (!low && (rest.kind != IndexTerm::Kind::kRemainder || rest.by.valid())) {
            continue;
        }
        const auto zeros = static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(factor)));
        if (low && bits != kExact && zeros + rest.divisor >= bits) {
            erase(i);
            return Scaled{rest.operand, factor};
        }
        if (low && rest.divisor >= 63) {
            continue;
        }
        const uint64_t divisor = low ? uint64_t{1} << rest.divisor : rest.divisor;
        for (size_t k = 0; k < sum.parts.size(); ++k) {
            const IndexTerm& other = term(sum.parts[k].term);
            if (other.kind == IndexTerm::Kind::kQuotient && other.operand == rest.operand &&
                other.divisor == divisor && !other.by.valid() &&
                WideInteger{sum.parts[k].factor} == WideInteger{factor} * divisor) {
                const Scaled whole{rest.operand, factor};
                erase(std::max(i, k));
                erase(std::min(i, k));
                return whole;
            }
        }
    }
    return std::nullopt;
}

// Parts are in order, each term once; factors may be 0.
IndexExpr IndexAlgebra::Finish(IndexSum sum, uint32_t bits) {
    if (bits != kExact) {
        for (IndexSum::Part& part : sum.parts) {
            part.factor = ir::SignExtend(static_cast<uint64_t>(part.factor), bits);
        }
        sum.constant = ir::SignExtend(static_cast<uint64_t>(sum.constant), bits);
    }
    std::erase_if(sum.parts, [](const IndexSum::Part& part) { return part.factor == 0; });
    const std::optional<Scaled> replacement = TakeReplaceable(sum, bits);
    if (!replacement) {
        return Intern(std::move(sum));
    }
    const IndexExpr rest = Finish(std::move(sum), bits);
    return Combine(rest, replacement->expr, replacement->factor, bits);
}

IndexExpr IndexAlgebra::Combine(IndexExpr a, IndexExpr b, int64_t factor, uint32_t bits) {
    if (!a.valid() || !b.valid()) {
        return {};
    }
    bool fits = true;
    auto add = [&](int64_t first, int64_t second) {
        int64_t product = 0;
        int64_t result = 0;
        fits &= !__builtin_mul_overflow(second, factor, &product);
        fits &= !__builtin_add_overflow(first, product, &result);
        return result;  // wrapped if it does not fit
    };
    IndexSum result;
    const IndexSum& x = sum(a);
    const IndexSum& y = sum(b);
    result.constant = add(x.constant, y.constant);
    size_t i = 0;
    size_t k = 0;
    while (i < x.parts.size() || k < y.parts.size()) {
        const bool in_x =
            k == y.parts.size() || (i < x.parts.size() && x.parts[i].term <= y.parts[k].term);
        const bool in_y =
            i == x.parts.size() || (k < y.parts.size() && y.parts[k].term <= x.parts[i].term);
        const IndexTermId term = in_x ? x.parts[i].term : y.parts[k].term;
        const int64_t sum = add(in_x ? x.parts[i].factor : 0, in_y ? y.parts[k].factor : 0);
        result.parts.push_back({term, sum});
        i += in_x ? 1 : 0;
        k += in_y ? 1 : 0;
    }
    if (!fits && bits == kExact) {
        return {};
    }
    return Finish(std::move(result), bits);
}

IndexExpr IndexAlgebra::Scale(IndexExpr a, int64_t factor, uint32_t bits) {
    return Combine(Constant(0), a, factor, bits);
}

IndexExpr IndexAlgebra::Reduce(IndexExpr a, uint32_t bits) {
    return a.valid() ? Finish(sum(a), bits) : a;
}

// The number of a product's factors is bounded, and so is that of its powers.
IndexTermId IndexAlgebra::ProductOf(IndexTermId a, IndexTermId b) {
    IndexTerm product;
    product.kind = IndexTerm::Kind::kProduct;
    for (IndexTermId id : {a, b}) {
        const IndexTerm& factor = term(id);
        if (factor.kind == IndexTerm::Kind::kProduct) {
            product.factors.insert(product.factors.end(), factor.factors.begin(),
                                   factor.factors.end());
        } else {
            product.factors.push_back(id);
        }
        product.axes |= factor.axes;
        product.depth = std::max(product.depth, factor.depth);
    }
    if (product.factors.size() > kMaxFactors) {
        return {};
    }
    std::ranges::sort(product.factors);
    product.axes |= UnevenIf(product.axes);
    product.range = kernel::Product(term(a).range, term(b).range);
    product.zeros = static_cast<uint8_t>(std::min(63, term(a).zeros + term(b).zeros));
    return Intern(std::move(product));
}

IndexExpr IndexAlgebra::Product(IndexExpr a, IndexExpr b, uint32_t bits) {
    if (!a.valid() || !b.valid()) {
        return {};
    }
    if (const auto factor = AsConstant(a)) {
        return Scale(b, *factor, bits);
    }
    if (const auto factor = AsConstant(b)) {
        return Scale(a, *factor, bits);
    }
    // Interning moves what ids lead to.
    const IndexSum x = sum(a);
    const IndexSum y = sum(b);
    if ((x.parts.size() + 1) * (y.parts.size() + 1) > 2 * kMaxParts) {
        return {};
    }
    IndexExpr result = Scale(b, x.constant, bits);
    for (const IndexSum::Part& first : x.parts) {
        const IndexExpr scaled = Scale(OfTerm(first.term), first.factor, bits);
        result = Combine(result, scaled, y.constant, bits);
        for (const IndexSum::Part& second : y.parts) {
            const IndexExpr product = OfTerm(ProductOf(first.term, second.term));
            result = Combine(result, Scale(product, first.factor, bits), second.factor, bits);
        }
    }
    return result;
}

}  // namespace fornax::kernel
