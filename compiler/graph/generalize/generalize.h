// One graph with symbols in place of several graphs that differ in their sizes.
//
// Whoever builds graphs with constant sizes need not know how a size depends on another: that is
// read off two members of the family (sizes_of_graph.h). A size that differs is taken to be an
// affine function of the size that grows. The third member is compared with what that gives size
// by size, so a wrong idea costs a plan and nothing else.
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

    // Whether it is the graph of these sizes for some value of the symbol.
    bool Covers(std::span<const int64_t> sizes) const;

    // The graph with the symbol, whose hint is its value in `b`. The error is a sentence that says
    // what stands against it:
    // - a rule of an operation holds for some sizes only, such as equal numbers of elements;
    // - the size of a weight differs, or the number of rows of a product with one that is not for
    //   any_rows; where it is, rows are guarded to be more than kFewRows, which have kernels of
    //   their own.
    Result<Graph> Apply(const Graph& member,
                        std::string name,
                        std::span<const WeightInput> weights) const;

    // The names of the symbols, for CompileOptions::dynamic_sizes.
    std::set<std::string> symbols() const { return {symbol_.name()}; }

    static constexpr int64_t kMostGranule = 64;
    static constexpr int64_t kFewRows = 8;

  private:
    explicit Generalization(const Symbol& symbol) : symbol_(symbol) {}

    Symbol symbol_;
    size_t at_ = 0;  // the size that is the symbol times granule_
    int64_t granule_ = 1;
    int64_t hint_ = 1;
    std::vector<Expr> sizes_;
};

}  // namespace fornax::graph
