// Which sizes are equal whenever a plan's guards hold.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/sizes.h"

namespace fornax::graph {

// Proves only what takes little time: equal forms, symbols that a guard makes equal to another one
// or to a number, and guards that say it, in any number of steps.
class SizeProofs {
  public:
    explicit SizeProofs(std::span<const Guard> guards);

    bool AreEqual(const Expr& a, const Expr& b) const;
    bool AreEqual(const Shape& a, const Shape& b) const;
    // Whether tensors of these shapes have as many elements. False also if that would have to be
    // computed from numbers that do not fit 60 bits.
    bool HaveEqualVolumes(const Shape& a, const Shape& b) const;
    // Whether the guard is one of the plan's or follows from them as above.
    bool Holds(const Guard& guard) const;

  private:
    struct Less {
        bool operator()(const Expr& a, const Expr& b) const { return Expr::Compare(a, b) < 0; }
    };

    double GreatestNumber(const Expr& expr) const;
    Expr Canonical(const Expr& expr) const;
    size_t ClassOf(const Expr& canonical) const;

    std::span<const Guard> guards_;
    std::map<Symbol, Expr> values_;  // of symbols: a symbol that stays, or a number
    std::map<Expr, size_t, Less> numbers_;
    std::vector<size_t> parents_;    // of the classes of equal forms, by number
    std::vector<Expr> differences_;  // that are 0
};

}  // namespace fornax::graph
