// Index arithmetic in one canonical form: a constant plus a sum of factors times terms.
//
// A term is a symbol (an input, a loop's iteration, a value that is not looked into), or what
// division makes of another sum: a quotient, a remainder, low bits; or a product of terms. Sums are
// exact integers, without a width: what wraps is written out as low bits. So equal expressions are
// one sum wherever they come from, differences cancel, and ranges are those of plain integers.
//
// Sums and terms are interned: equal ones have equal ids. The ids and therefore the text depend on
// the order of creation only. Everything is bounded: an operation whose result would be too long,
// too deep or too large for the numbers gives an invalid expression, and so does any operation on
// one; callers then treat the value as a symbol. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

__extension__ using WideInteger = __int128;

// What a value depends on that is not the same everywhere.
enum IndexAxes : uint8_t {
    kNoAxis = 0,
    kLaneAxis = 1,
    kWorkgroupXAxis = 2,
    kWorkgroupYAxis = 4,
    kWorkgroupZAxis = 8,
    kWorkgroupAxes = 14,
    kIterationAxis = 16,  // of any loop
    // Lanes may differ by anything. Without it they differ by what numbers them, times and divided
    // by constants.
    kUnevenAxis = 32,
    kAllAxes = 63,
};

// For what makes the differences between lanes something else than multiples.
inline uint8_t UnevenIf(uint8_t axes) {
    return (axes & kLaneAxis) != 0 ? kUnevenAxis : kNoAxis;
}

// Both ends belong to it.
struct IndexRange {
    // Values beyond are not told apart: this end is open.
    static constexpr WideInteger kLimit = WideInteger{1} << 120;

    WideInteger low = 0;
    WideInteger high = 0;

    bool Within(WideInteger first, WideInteger last) const { return low >= first && high <= last; }
    friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

using IndexExpr = StrongId<struct IndexExprTag>;
using IndexTermId = StrongId<struct IndexTermTag>;

struct IndexSymbol {
    enum class Kind : uint8_t {
        kBuiltin,    // number: an ir::BuiltinId
        kIteration,  // number: a loop's instruction; how many iterations it has begun before
        kValue,      // number: a value of the kernel, which is not looked into
        kAssumed,    // number: a value of the kernel, of which no more than its axes is assumed
    };

    Kind kind = Kind::kValue;
    uint32_t number = 0;
    uint8_t axes = kNoAxis;
    uint64_t max = UINT64_MAX;  // from 0 on
    uint8_t zeros = 0;          // known trailing zero bits
};

struct IndexTerm {
    enum class Kind : uint8_t {
        kSymbol,
        kQuotient,   // floor(operand / divisor)
        kRemainder,  // operand - divisor * floor(operand / divisor)
        kLowBits,    // the same for 2^divisor, up to 2^64
        kProduct,
    };

    Kind kind = Kind::kSymbol;
    IndexSymbol symbol;  // kSymbol
    IndexExpr operand;   // kQuotient, kRemainder, kLowBits
    uint64_t divisor = 0;
    // The divisor of kQuotient and kRemainder, if it is no constant. Where it is 0, the term is any
    // number from 0 to `divisor`.
    IndexExpr by;
    std::vector<IndexTermId> factors;  // kProduct: two or more, in order

    // What follows from these.
    IndexRange range;
    uint8_t zeros = 0;  // known trailing zero bits, 63 at most
    uint8_t axes = kNoAxis;
    uint8_t depth = 0;
};

struct IndexSum {
    struct Part {
        IndexTermId term;
        int64_t factor = 0;  // not 0
        friend bool operator==(const Part&, const Part&) = default;
    };

    int64_t constant = 0;
    std::vector<Part> parts;  // by term

    // What follows from these.
    IndexRange range;
    uint8_t axes = kNoAxis;
    uint8_t depth = 0;
};

class IndexAlgebra {
  public:
    // A sum's parts; divisions inside one another; terms and sums that are no symbols.
    static constexpr size_t kMaxParts = 12;
    static constexpr uint8_t kMaxDepth = 12;
    static constexpr size_t kMaxNodes = size_t{1} << 16;

    const IndexSum& sum(IndexExpr expr) const { return sums_[expr.value()]; }
    const IndexTerm& term(IndexTermId id) const { return terms_[id.value()]; }
    const IndexRange& range(IndexExpr expr) const { return sum(expr).range; }
    uint8_t axes(IndexExpr expr) const { return sum(expr).axes; }
    std::optional<int64_t> AsConstant(IndexExpr expr) const;
    // The value is a multiple of 2^this; 63 at most.
    uint32_t TrailingZeros(IndexExpr expr) const;

    IndexExpr Constant(int64_t value);
    // Symbols of one kind and number are one; what else is said of it counts the first time.
    IndexExpr Symbol(const IndexSymbol& symbol);

    // Exact.
    IndexExpr Add(IndexExpr a, IndexExpr b) { return Combine(a, b, 1, kExact); }
    IndexExpr Subtract(IndexExpr a, IndexExpr b) { return Combine(a, b, -1, kExact); }
    IndexExpr Multiply(IndexExpr a, IndexExpr b) { return Product(a, b, kExact); }
    // By a number from 1 to 2^63; rounded down.
    IndexExpr Quotient(IndexExpr a, uint64_t by);
    IndexExpr Remainder(IndexExpr a, uint64_t by);
    // By another expression. Neither is negative. Where the divisor is 0, the result is any number
    // from 0 to `max_if_zero`.
    IndexExpr Quotient(IndexExpr a, IndexExpr by, uint64_t max_if_zero) {
        return DividedBy(IndexTerm::Kind::kQuotient, a, by, max_if_zero);
    }
    IndexExpr Remainder(IndexExpr a, IndexExpr by, uint64_t max_if_zero) {
        return DividedBy(IndexTerm::Kind::kRemainder, a, by, max_if_zero);
    }
    // Modulo 2^bits, from 0 on; 1 to 64 bits.
    IndexExpr LowBits(IndexExpr a, uint32_t bits);
    // The same from -2^(bits - 1) on.
    IndexExpr SignedLowBits(IndexExpr a, uint32_t bits);

    // Modulo 2^bits: any number that is congruent, the factors near 0.
    IndexExpr AddModulo(IndexExpr a, IndexExpr b, uint32_t bits) { return Combine(a, b, 1, bits); }
    IndexExpr SubtractModulo(IndexExpr a, IndexExpr b, uint32_t bits) {
        return Combine(a, b, -1, bits);
    }
    IndexExpr MultiplyModulo(IndexExpr a, IndexExpr b, uint32_t bits) {
        return Product(a, b, bits);
    }
    IndexExpr Reduce(IndexExpr a, uint32_t bits);

    // The expression modulo 2^bits with each symbol exchanged for what the function gives, which is
    // invalid where nothing is known of it.
    using Replacement = std::function<IndexExpr(const IndexSymbol&)>;
    IndexExpr Substitute(IndexExpr expr, uint32_t bits, const Replacement& replacement);

    // "4*local_id_x + 16*(workgroup_id_x / 3) + 7"
    std::string Text(IndexExpr expr) const;

  private:
    static constexpr uint32_t kExact = 0;  // in place of a number of bits

    using Replacements = std::map<IndexTermId, IndexExpr>;

    struct Scaled {
        IndexExpr expr;
        int64_t factor;
    };

    // Finds ids by contents.
    class InternTable {
      public:
        template <typename Equal>
        uint32_t Find(uint64_t hash, Equal equal) const;
        void Add(uint64_t hash, uint32_t id);

      private:
        struct Entry {
            uint64_t hash;
            uint32_t id;
            uint32_t next;
        };
        std::vector<uint32_t> heads_ = std::vector<uint32_t>(64, UINT32_MAX);
        std::vector<Entry> entries_;
    };

    IndexExpr Intern(IndexSum sum);
    IndexTermId Intern(IndexTerm term);
    IndexExpr OfTerm(IndexTermId term, int64_t factor = 1);
    IndexExpr Combine(IndexExpr a, IndexExpr b, int64_t factor_of_b, uint32_t bits);
    IndexExpr Scale(IndexExpr a, int64_t factor, uint32_t bits);
    IndexExpr Product(IndexExpr a, IndexExpr b, uint32_t bits);
    IndexTermId ProductOf(IndexTermId a, IndexTermId b);
    IndexExpr Divided(IndexTerm::Kind kind, IndexExpr operand, uint64_t divisor);
    IndexExpr DividedBy(IndexTerm::Kind kind, IndexExpr a, IndexExpr by, uint64_t max_if_zero);
    IndexExpr Finish(IndexSum sum, uint32_t bits);
    std::optional<Scaled> TakeReplaceable(IndexSum& sum, uint32_t bits) const;
    // The largest part of a number that is known to divide the part of a sum.
    uint64_t CommonDivisor(const IndexSum::Part& part, uint64_t of) const;
    // Splits a sum into multiples of a divisor of `by` and what is between 0 and it, but not only
    // 0.
    struct Split {
        IndexExpr multiples;
        IndexExpr rest;
    };
    std::optional<Split> SplitAt(IndexExpr a, uint64_t by);
    // The greatest common divisor of all factors, the constant and `by`.
    uint64_t CommonFactor(IndexExpr a, uint64_t by) const;
    IndexExpr ExactQuotient(IndexExpr a, uint64_t by);
    IndexExpr QuotientOfTerm(IndexTermId id, uint64_t by);
    IndexExpr SubstituteIn(IndexTermId id, const Replacement& replacement, Replacements& known);
    IndexRange RangeOf(const IndexSum& sum) const;
    std::string Text(IndexTermId id) const;

    std::vector<IndexSum> sums_;
    std::vector<IndexTerm> terms_;
    InternTable sum_ids_;
    InternTable term_ids_;
};

}  // namespace fornax::kernel
