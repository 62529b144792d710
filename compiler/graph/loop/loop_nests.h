// Loops that become one, and a kernel's index expressions in terms of the loops that are left.
//
// Where all accesses see two adjacent loops as one, code has one loop for both: its variable is
// outer * inner_extent + inner, and expressions are rewritten in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/graph/loop/kernel.h"
#include "compiler/graph/loop/scope.h"

namespace fornax::graph::loop {

// Loops of which some may be several that became one.
struct Nest {
    std::vector<Loop> loops;
    VariableSet variables = 0;  // of the kernel
};

class LoopNests {
  public:
    // `domain` says what is known of sizes and variables, and gets the variables of new loops.
    LoopNests(const Kernel& kernel, const Scope& scope, Domain& domain)
        : kernel_(kernel), scope_(scope), domain_(domain) {}
    LoopNests(const LoopNests&) = delete;
    LoopNests& operator=(const LoopNests&) = delete;

    // One loop for adjacent ones wherever all accesses of `users` allow it. Expressions are in
    // terms of it until they are split again.
    Nest Collapse(std::span<const Loop> loops, std::span<const Expr> users);
    // What is computed of the scalars' and stores' variables: offsets, checks, extents.
    std::vector<Expr> UsesIn(const std::vector<bool>& scalars, std::span<const Store> stores) const;
    Expr Simplified(const Expr& expr) const;

    // The element that an access names, but for the part of indices that are scalars.
    Expr Offset(BufferId buffer, const std::vector<Expr>& index) const;
    bool Proven(const Expr& index, const Expr& extent) const;
    bool FitsI32(const Expr& expr) const;
    // Whether no loop's extent may be negative: tiles are counted without signs.
    bool HasNoNegativeExtents() const;

    // The merges so far. Later ones are for code that ends before they are dropped.
    size_t merges() const { return merges_.size(); }
    void DropMerges(size_t from);

  private:
    // Two variables that became one: merged = outer * inner_extent + inner.
    struct Merge {
        Symbol outer, inner, merged;
        Expr inner_extent;
    };
    Expr UnmergedValue(const Symbol& symbol) const;

    const Kernel& kernel_;
    const Scope& scope_;
    Domain& domain_;
    std::vector<Merge> merges_;  // inner ones first
    uint32_t merge_count_ = 0;   // that there have been
};

// Loops that become one while this lives are several again after it.
class MergeScope {
  public:
    explicit MergeScope(LoopNests& nests) : nests_(nests), before_(nests.merges()) {}
    ~MergeScope() { nests_.DropMerges(before_); }
    MergeScope(const MergeScope&) = delete;
    MergeScope& operator=(const MergeScope&) = delete;

  private:
    LoopNests& nests_;
    size_t before_;
};

// Whether a scalar is part of the expression.
bool UsesScalar(const Expr& expr);

}  // namespace fornax::graph::loop
