// Random graphs for differential tests: the interpreter against compiled plans.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/graph/ir/graph.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph::testing {

// Inputs of one size.
struct RandomCase {
    Bindings sizes;
    std::vector<Tensor> inputs;
};

struct RandomGraph {
    Graph graph;
    // The sizes that a plan is to keep; the others become constants.
    std::set<std::string> dynamic_sizes;
    // The first has the sizes that are the graph's hints.
    std::vector<RandomCase> cases;
    // By output: whether results must agree to the last bit, else how far they may lie apart.
    std::vector<bool> exact;
    std::vector<double> tolerance;
    bool has_state = false;
};

// A graph of all primitives that a kernel can hold, composites, conditions, loops and states.
// Whatever depends on which of two numbers is greater is only applied to numbers that every
// implementation computes exactly, so that a difference in the last bit never becomes another
// result. Of the seed's cases the one of this number is the graph's hints; graphs of one seed
// differ where sizes decide.
RandomGraph MakeRandomGraph(uint64_t seed, size_t first_case = 0);
inline constexpr size_t kRandomCases = 4;

// Runs a plan; keeps the values of its states from call to call.
using RunPlan = std::function<Result<std::vector<Tensor>>(std::span<const Tensor> inputs)>;
using LoadPlan = std::function<Result<RunPlan>(Plan plan)>;

// Compiles the seed's graph, runs the plan for all of its cases that fit, compiles anew for those
// that do not, and compares everything with the interpreter. The first difference or error as a
// sentence, or "". `runs`, if not null, receives how often a plan ran.
std::string CheckRandomGraph(uint64_t seed, const LoadPlan& load, size_t* runs = nullptr);

// The same with plans that are played on the host, their kernels by their interpreter.
std::string CheckRandomGraphOnHost(uint64_t seed, size_t* runs = nullptr);

// Makes graphs with constant sizes of the seed's cases, generalizes each two of them, and compares
// what the plans compute for all cases that they serve with the interpreter's results. The first
// difference or error, or "". Adds to `served` how many cases had been no part of the plan's
// making.
std::string CheckGeneralizedOnHost(uint64_t seed, size_t* served);

}  // namespace fornax::graph::testing
