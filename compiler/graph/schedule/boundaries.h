// Why each value lies in memory: the boundaries between kernels, for --explain.
#pragma once

#include <string>
#include <vector>

#include "compiler/graph/ir/graph.h"
#include "compiler/graph/schedule/realize.h"

namespace fornax::graph {

// A value that one kernel writes and others read.
struct Boundary {
    std::string node;                  // that computes it
    std::string operation;             // "contract", "map exp"
    TensorType type;                   // what is kept
    std::string reason;                // a clause
    std::vector<std::string> nodes;    // all that its kernel computes, `node` first
    std::vector<std::string> readers;  // the nodes of the kernels that read it, or "outputs"
};

// The boundaries are in the order of the graph. Inputs, constants and states are none. What lies in
// memory without being a value of the graph, PlanBuilder::AddTemporary() tells.
std::vector<Boundary> ExplainBoundaries(const Graph& graph, const Realization& realization);

}  // namespace fornax::graph
