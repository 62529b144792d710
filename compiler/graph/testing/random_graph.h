// Random graphs for differential tests: the interpreter against compiled plans.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/graph/ir/graph.h"

namespace fornax::graph::testing {

struct RandomGraph {
    Graph graph;
    std::vector<Tensor> inputs;
    // By output: whether results must agree to the last bit, else how far they may lie apart.
    std::vector<bool> exact;
    std::vector<double> tolerance;
};

// A graph of all primitives that a kernel can hold. Whatever depends on which of two numbers is
// greater is only applied to numbers that every implementation computes exactly, so that a
// difference in the last bit never becomes another result.
RandomGraph MakeRandomGraph(uint64_t seed);

}  // namespace fornax::graph::testing
