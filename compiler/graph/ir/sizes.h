// What is known and assumed of the symbols in a graph's shapes.
//
// Every symbol has a hint: the value in the case that the graph is compiled for first. Where the
// compiler must know how two sizes compare and their forms do not tell, it looks at the hints and
// notes what it saw as a guard. The plan holds for all bindings that satisfy the guards; for others
// it is made anew. So a decision by hint is never wrong, only more special than it might be.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/expr.h"
#include "compiler/graph/ir/types.h"

namespace fornax::graph {

enum class Relation : uint8_t { kEqual, kNotEqual, kLess, kLessEqual };

struct Guard {
    Relation relation = Relation::kEqual;
    Expr a, b;
    bool operator==(const Guard&) const = default;
    bool operator<(const Guard& other) const;  // any order that is total
    bool Holds(const Bindings& bindings) const;
    std::string ToString() const;  // "n <= 512"
};

class SizeFacts {
  public:
    // Declares a symbol: its hint, and the values that it may have. A symbol that is declared again
    // keeps what it has.
    Symbol Declare(std::string_view name, int64_t hint, Range range = {0, INT32_MAX});
    const Bindings& hints() const { return hints_; }
    const Ranges& ranges() const { return ranges_; }
    std::span<const Guard> guards() const { return guards_; }

    // Whether the relation holds, of the forms if they tell, else of the hints, with a guard.
    bool Equal(const Expr& a, const Expr& b);
    bool Less(const Expr& a, const Expr& b);
    bool LessEqual(const Expr& a, const Expr& b) { return !Less(b, a); }
    bool Equal(const Shape& a, const Shape& b);
    // The hint's value, with a guard that it is this.
    int64_t Fix(const Expr& a);
    // The hint's value without a guard: for choices that do not change results.
    int64_t Hint(const Expr& a) const;
    // Takes over what another graph's facts say, for inlining; without the guards that use a symbol
    // of `hidden`, which only the other graph can check.
    void Merge(const SizeFacts& other, const std::set<Symbol>& hidden = {});
    void AddGuard(Guard guard);

  private:
    Bindings hints_;
    Ranges ranges_;
    std::vector<Guard> guards_;
    // The same, for adding each once: loops that are unrolled have many thousands.
    std::set<Guard> known_;
};

}  // namespace fornax::graph
