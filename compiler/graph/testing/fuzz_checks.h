// For fuzz targets that make graphs of bytes: what importing and compiling may end as.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "base/printable.h"
#include "base/result.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/plan/plan_kernel.h"

namespace fornax::graph::fuzzing {

[[noreturn]] inline void Fail(const char* what, const std::string& message) {
    std::fprintf(stderr, "%s: %s\n", what, message.c_str());
    std::abort();
}

// Our own errors, which no bytes may lead to, and what is no printable sentence.
inline void CheckError(const char* what, const Error& error) {
    if (error.code == ErrorCode::kInternal || !error.message.ends_with('.') ||
        Printable(error.message) != error.message) {
        Fail(what, error.message);
    }
}

// How many nodes the compiler will have, but for loops that it unrolls.
inline size_t PrimitivesOf(const Graph& graph) {
    size_t count = 0;
    for (const Node& node : graph.nodes()) {
        ++count;
        for (const Body& body : node.bodies) {
            count += PrimitivesOf(*body);
        }
    }
    return count;
}

// A valid plan whose kernels have SPIR-V.
inline void CheckPlan(const Plan& plan) {
    if (const Status valid = ValidatePlan(plan); !valid.ok()) {
        Fail("ValidatePlan", valid.error().message);
    }
    for (const PlanKernel& kernel : plan.kernels) {
        for (const bool matrices : {true, false}) {
            // Other kernels are the same with matrices and without.
            if (matrices && kernel.loop.mapping != loop::Mapping::kProduct &&
                kernel.loop.mapping != loop::Mapping::kAttention) {
                continue;
            }
            loop::Target target;
            target.matrices_f32 = matrices;
            const auto module = CodeOf(kernel, target);
            if (!module.ok()) {
                CheckError("CodeOf", module.error());
            }
        }
    }
}

// Whether the graph compiles, or is too large for a fuzz target's time: compiling takes as long as
// the graph is large, which importers bound.
inline bool CheckGraph(Graph graph, const CompileOptions& options, size_t most_primitives) {
    if (const Status valid = Verify(graph); !valid.ok()) {
        Fail("Verify", valid.error().message);
    }
    if (PrimitivesOf(graph) > most_primitives) {
        return true;
    }
    const Result<Plan> plan = Compile(std::move(graph), options);
    if (!plan.ok()) {
        CheckError("Compile", plan.error());
        return false;
    }
    CheckPlan(*plan);
    return true;
}

}  // namespace fornax::graph::fuzzing

// Most of the time of small runs is what the allocator keeps for its reports: of where memory was
// allocated one frame is enough, and what was freed needs not be kept for long.
extern "C" inline const char* __asan_default_options() {
    return "malloc_context_size=1:quarantine_size_mb=4";
}

// libFuzzer's own change of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
