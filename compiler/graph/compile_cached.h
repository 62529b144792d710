// Plans kept between processes, under the hashes of their graphs.
#pragma once

#include "base/disk_cache.h"
#include "base/result.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/ir/graph.h"
#include "compiler/graph/plan/plan_file.h"

namespace fornax::graph {

// A plan's file; it holds no code.
inline constexpr CacheKind kPlanCacheKind = {
    .name = "graphplan",
    .extension = "plan",
    .version = kPlanFormatVersion,
    .executable = false,
};

struct CachedPlan {
    Plan plan;
    bool was_cached = false;  // else it was compiled
    bool is_stored = false;   // in the cache now
};

// The plan of a graph that passes Verify(), from the cache or compiled and put there. A damaged
// entry is replaced, with a warning. Only plans are cached, never errors, which are those of
// Compile(). A cache that cannot be used costs time and a warning.
Result<CachedPlan> CompileCached(Graph graph, const CompileOptions& options, DiskCache& cache);

}  // namespace fornax::graph
