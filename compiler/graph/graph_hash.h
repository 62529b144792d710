// The hash of a graph, for keys of what is made of it, and the digest of the compilers, which is in
// the keys of models' plans (runtime/model_cache.h).
#pragma once

#include "base/hash.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/ir/graph.h"

namespace fornax::graph {

// Covers everything that a plan depends on or shows: the nodes with their operations, names, edges
// and bodies, the types and names of all values, constants' contents, symbols with their ranges and
// hints, guards, the options, the format of plans, and the compiler itself by a digest of its
// sources. Two graphs with one hash get the same plan.
Hash128 HashGraph(const Graph& graph, const CompileOptions& options);

// Contents of constants of more bytes are no structure.
inline constexpr uint64_t kMaxStructureConstant = 4096;

// The same without the contents of large constants: equal for a network before and after training.
// What is measured or chosen for a network's kernels can be kept under it. Kernels themselves need
// no such key: weights are blocks of the plan and no part of kernels, so both networks' kernels
// become the same SPIR-V, under which the driver keeps native code.
Hash128 HashStructure(const Graph& graph, const CompileOptions& options);

// The digest of everything in this build that decides what a plan becomes, frontends included.
Hash128 CompilerDigest();

}  // namespace fornax::graph
