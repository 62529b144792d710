// A graph with constant sizes taken apart: its sizes, and a hash of everything else.
//
// Graphs that differ in their sizes alone are a family: a network for contexts or prompts of
// several lengths.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/hash.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

struct FamilyMember {
    // Equal for graphs of one family. It covers operations, edges, element types, names, constants
    // and everything in fields that is no size.
    Hash128 family;
    // The inputs' dimensions in order, then the sizes in the nodes' fields, in the order of Visit()
    // and with those of a node's bodies behind its own. The sizes of results follow from these.
    std::vector<int64_t> sizes;
};

// Nullopt if a size is no constant. The graph's own name does not count.
std::optional<FamilyMember> SplitSizes(const Graph& graph);

// A graph with `sizes` in place of those that SplitSizes() found, and with what `facts` says of
// their symbols. The error, a sentence, says which node does not take its sizes.
Result<Graph> WithSizes(const Graph& graph,
                        std::string name,
                        std::span<const Expr> sizes,
                        const SizeFacts& facts);

}  // namespace fornax::graph
