// A slow interpreter of the graph IR, for tests: every operator by its definition, in double
// precision.
//
// Shares nothing with the kernels or the passes but the IR itself.
#pragma once

#include <vector>

#include "compiler/legacy_graph/graph.h"

namespace fornax::runtime {

// The values of the graph's outputs. inputs[i] holds the elements of graph.inputs()[i].
std::vector<std::vector<float>> Interpret(const legacy_graph::Graph& graph,
                                          const std::vector<std::vector<float>>& inputs);

}  // namespace fornax::runtime
