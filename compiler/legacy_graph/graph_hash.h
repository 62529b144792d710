// The hash of a graph: the key under which its plan is cached.
#pragma once

#include "base/hash.h"
#include "compiler/legacy_graph/compile.h"
#include "compiler/legacy_graph/graph.h"

namespace fornax::legacy_graph {

// Covers everything that the plan depends on or shows: the nodes with their operators, parameters,
// names and edges, the types and names of inputs and outputs, the constants' types and bytes, the
// options, the kernels, the plan format, and Fornax's version. Two graphs with one hash get the
// same plan.
Hash128 HashGraph(const Graph& graph, const CompileOptions& options);

}  // namespace fornax::legacy_graph
