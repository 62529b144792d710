// The graph compiler's entry point.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/ir/graph.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/graph/schedule/boundaries.h"

namespace fornax::graph {

// How precise sums of f32 products are. Everything else is computed as the model says.
enum class Precision : uint8_t {
    kHighest,  // f32
    kHigh,     // no less than operands of bf16 in parts; at present the same as kHighest
    kMedium,   // operands of products with constant matrices may be rounded to bf16
};

struct CompileOptions {
    // No calls on the host: a graph that needs one is refused, with all the reasons.
    bool strict = false;
    // The names of sizes for which the plan is to hold whatever they are. All others are taken to
    // be what their hints say, which makes faster kernels, and another plan for each.
    std::set<std::string> dynamic_sizes;
    Precision precision = Precision::kHighest;
    // The device multiplies bf16 faster than f32, so that kMedium is worth it for products that are
    // not bound by reading their weights.
    bool bfloat16_products = false;
    // One processor without workgroups runs the plan: loop kernels only, and no layouts for tiles.
    bool serial = false;
};

// Whether this program was linked with the compiler (fornax_graph) or without it
// (fornax_graph_absent).
bool HasCompiler();

// The plan of a graph that passes Verify(). Errors are sentences;
// kUnsupported without a compiler. `boundaries`, if not null, receives why values lie in memory
// between kernels.
Result<Plan> Compile(Graph graph,
                     const CompileOptions& options,
                     std::vector<Boundary>* boundaries = nullptr);

// The graph with the hints of its sizes, but for those of these names, without composites and
// without control flow that can be unrolled: for those who read graphs and know the primitives
// alone. kUnsupported without a compiler.
Result<Graph> LowerToPrimitives(Graph graph, const std::set<std::string>& dynamic_sizes = {});

// Fails, with all the reasons, if a step of the plan runs on the host.
Status CheckStrict(const Plan& plan);

}  // namespace fornax::graph
