// The passes over the graph IR. Each takes a verified graph and leaves a verified graph that
// computes the same outputs; nodes that it made useless remain until Graph::Compact().
#pragma once

#include "base/result.h"
#include "compiler/legacy_graph/graph.h"

namespace fornax::legacy_graph {

// Computes nodes whose operands are all constants, where that is reshaping, transposing or an
// elementwise function.
void FoldConstants(Graph& graph);

// Removes what changes nothing: identities, reshapes to the same shape and of reshapes, transposes
// that keep the order.
void Simplify(Graph& graph);

// Joins operators with what stands behind them: a constant factor or summand per channel becomes
// part of a convolution's weight and bias, a constant row added to a matrix product its bias, and a
// function of one value its predecessor's activation. Only where the intermediate result has no
// other use.
void Fuse(Graph& graph);

}  // namespace fornax::legacy_graph
