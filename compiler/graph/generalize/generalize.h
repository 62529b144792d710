// One graph with symbols in place of several graphs that differ in their sizes.
//
// Whoever builds graphs with constant sizes need not know how a size depends on another: that is
// read off two members of the family (sizes_of_graph.h), or off three if two sizes grow that do not
// depend on each other. A size that differs is taken to be an affine function of those that grow,
// or a multiple of their product. The next member is compared with what that gives size by size, so
// a wrong idea costs a plan and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

// An input, by number, that stays as it is from run to run.
struct WeightInput {
    uint32_t input = 0;
    // Products with it are as fast if the number of rows is a symbol.
    bool any_rows = false;
};

class Generalization {
  public:
    // The sizes of two members of the family of `graph`, itself a member. Their first input's
    // dimension that differs becomes a symbol times the greatest power of two that divides it in
    // both, at most kMostGranule. Nullopt if that is not the whole difference: another size is no
    // affine function of it with integral coefficients.
    static std::optional<Generalization> Between(const Graph& graph,
                                                 std::span<const int64_t> a,
                                                 std::span<const int64_t> b);
    // The same of three members with a second symbol: the next input's dimension that the first
    // symbol does not explain. Nullopt if there is none.
    static std::optional<Generalization> Among(const Graph& graph,
                                               std::span<const int64_t> a,
                                               std::span<const int64_t> b,
                                               std::span<const int64_t> c);

    // Whether it is the graph of these sizes for some values of the symbols.
    bool Covers(std::span<const int64_t> sizes) const;

    // The graph with the symbols, whose hints are their values in the last member. The error is a
    // sentence that says what stands against it:
    // - a rule of an operation holds for some sizes only, such as equal numbers of elements;
    // - a dimension that follows from two symbols would be negative for some of their values;
    // - the size of a weight differs, or the number of rows of a product with one that is not for
    //   any_rows; where it is, rows are guarded to be more than kFewRows, which have kernels of
    //   their own.
    Result<Graph> Apply(const Graph& member,
                        std::string name,
                        std::span<const WeightInput> weights) const;

    // The names of the symbols, for CompileOptions::dynamic_sizes.
    std::set<std::string> symbols() const;

    static constexpr int64_t kMostGranule = 64;
    static constexpr int64_t kFewRows = 8;

  private:
    // A size that grows: the symbol times the granule.
    struct Growing {
        Symbol symbol;
        size_t at = 0;
        int64_t granule = 1, hint = 1;
        Range range;  // of the symbol
    };
    Generalization() = default;

    static Growing GrowingAt(size_t place,
                             size_t number,
                             std::span<const std::span<const int64_t>> members);
    // Restricts the symbols to values for which no size is negative that never was.
    void RestrictRanges(std::span<const std::span<const int64_t>> members);

    std::vector<Growing> growing_;
    std::vector<Expr> sizes_;
};

}  // namespace fornax::graph
