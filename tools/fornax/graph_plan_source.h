// Where `run` and `compile` get a plan from: a plan file, the cache, or the graph compiler.
#pragma once

#include <string>

#include "base/disk_cache.h"
#include "base/result.h"
#include "compiler/frontends/legacy_onnx/importer.h"
#include "compiler/legacy_graph/compile.h"
#include "compiler/legacy_graph/plan.h"

namespace fornax::tool {

struct PlanRequest {
    std::string path;  // an ONNX model or a plan file
    legacy_onnx::ImportOptions import;
    legacy_graph::CompileOptions compile;
    bool use_cache = true;
};

enum class PlanOrigin { kPlanFile, kCache, kCompiler };

struct LoadedPlan {
    legacy_graph::Plan plan;
    PlanOrigin origin = PlanOrigin::kCompiler;
    bool stored = false;      // the compiler's plan is in the cache now
    double milliseconds = 0;  // to read, import and compile, or to read and look up

    // "compiled in 3.1 ms and cached", for the report.
    std::string Describe() const;
};

// The cache holds plans by the hash of the imported graph. An entry that is damaged or does not
// belong to the graph is ignored and replaced; a graph that does not compile leaves nothing behind.
Result<LoadedPlan> LoadPlan(const PlanRequest& request, DiskCache& cache);

inline constexpr CacheKind kPlanCacheKind = {"plan", "fnx", 1, false};

}  // namespace fornax::tool
