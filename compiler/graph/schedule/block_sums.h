// Products of few rows whose sums go over blocks and, in order, over the elements of a block, as
// those with quantised weights where they lie do. Their kernels (loop/few_dots.h) compute each
// element of the weights once for all rows, and what the elements of a block share once a block.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

// The operand of a product of this kind whose elements are computed once for all rows.
std::optional<size_t> OperandOfBlocks(const Graph& graph, const Node& node);

// The operand of an integer product of bytes with a sum for each block, whose elements kernels
// compute once for loop::kRowsOfBlocks rows (loop/block_product.h).
std::optional<size_t> OperandOfByteBlocks(const Graph& graph, const Node& node);

// By node, how many neighbouring elements of its result are one evaluation: more than 1 for what
// broadcasts a value of a block to its elements within an operand of blocks.
std::vector<double> ElementsTogether(const Graph& graph);

}  // namespace fornax::graph
