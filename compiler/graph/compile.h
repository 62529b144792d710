// The graph compiler's entry point.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"
#include "compiler/graph/plan/plan.h"

namespace fornax::graph {

// How precise sums of f32 products are. Everything else is computed as the model says.
enum class Precision : uint8_t {
    kHighest,  // f32
    kHigh,     // no less than operands of bf16 in parts; at present the same as kHighest
    kMedium,   // operands may be rounded to bf16; sums are of f32
};

struct CompileOptions {
    // No calls on the host: a graph that needs one is refused, with all the reasons.
    bool strict = false;
    // The names of sizes for which the plan is to hold whatever they are. All others are taken to
    // be what their hints say, which makes faster kernels, and another plan for each.
    std::set<std::string> dynamic_sizes;
    Precision precision = Precision::kHighest;
};

// The plan of a graph that passes Verify(). Errors are sentences.
Result<Plan> Compile(Graph graph, const CompileOptions& options);

// Fails, with all the reasons, if a step of the plan runs on the host.
Status CheckStrict(const Plan& plan);

}  // namespace fornax::graph
