// Loads a plan from a file, from the cache or from the graph compiler.
#include "tools/fornax/graph_plan_source.h"

#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "base/file.h"
#include "base/log.h"
#include "compiler/legacy_graph/graph_hash.h"
#include "compiler/legacy_graph/plan_file.h"

namespace fornax::tool {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 31;

// The cached plan of the graph with this hash, if there is a good one.
std::optional<legacy_graph::Plan> FindInCache(DiskCache& cache, const Hash128& hash) {
    const std::optional<std::vector<std::byte>> entry = cache.Get(kPlanCacheKind, hash);
    if (!entry) {
        return std::nullopt;
    }
    Result<legacy_graph::Plan> plan = legacy_graph::ParsePlan(*entry);
    if (plan.ok() && plan->graph_hash == hash.ToHex()) {
        return std::move(*plan);
    }
    LogWarning("The cached plan {} is replaced: {}", hash.ToHex(),
               plan.ok() ? "It belongs to another graph." : plan.error().message);
    return std::nullopt;
}

Result<LoadedPlan> FromModel(const PlanRequest& request,
                             const std::string& bytes,
                             DiskCache& cache) {
    FORNAX_ASSIGN_OR_RETURN(legacy_graph::Graph graph,
                            legacy_onnx::ImportModelBytes(bytes, request.path, request.import));
    const Hash128 hash = legacy_graph::HashGraph(graph, request.compile);
    LoadedPlan loaded;
    if (request.use_cache) {
        if (std::optional<legacy_graph::Plan> plan = FindInCache(cache, hash)) {
            loaded.plan = std::move(*plan);
            loaded.origin = PlanOrigin::kCache;
            return loaded;
        }
    }
    Result<legacy_graph::Plan> plan = legacy_graph::Compile(std::move(graph), request.compile);
    if (!plan.ok()) {
        return Error{plan.error().code, fmt::format("{}: {}", request.path, plan.error().message)};
    }
    loaded.plan = std::move(*plan);
    if (request.use_cache) {
        FORNAX_ASSIGN_OR_RETURN(const std::vector<std::byte> stored,
                                legacy_graph::SerializePlan(loaded.plan));
        loaded.stored = cache.Put(kPlanCacheKind, hash, stored);
    }
    return loaded;
}

Result<LoadedPlan> FromFile(const PlanRequest& request, std::span<const std::byte> bytes) {
    Result<legacy_graph::Plan> plan = legacy_graph::ParsePlan(bytes);
    if (!plan.ok()) {
        return Error{plan.error().code, fmt::format("{}: {}", request.path, plan.error().message)};
    }
    LoadedPlan loaded;
    loaded.plan = std::move(*plan);
    loaded.origin = PlanOrigin::kPlanFile;
    return loaded;
}

}  // namespace

std::string LoadedPlan::Describe() const {
    switch (origin) {
        case PlanOrigin::kPlanFile:
            return fmt::format("read from a plan file in {:.1f} ms", milliseconds);
        case PlanOrigin::kCache:
            return fmt::format("found in the cache in {:.1f} ms", milliseconds);
        case PlanOrigin::kCompiler:
            break;
    }
    return fmt::format("compiled in {:.1f} ms{}", milliseconds, stored ? " and cached" : "");
}

Result<LoadedPlan> LoadPlan(const PlanRequest& request, DiskCache& cache) {
    const auto start = std::chrono::steady_clock::now();
    FORNAX_ASSIGN_OR_RETURN(const std::string bytes, ReadTextFile(request.path, kMaxFileBytes));
    const std::span<const std::byte> view = std::as_bytes(std::span(bytes));
    Result<LoadedPlan> loaded = legacy_graph::LooksLikePlan(view)
                                    ? FromFile(request, view)
                                    : FromModel(request, bytes, cache);
    if (loaded.ok()) {
        loaded->milliseconds =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                .count();
    }
    return loaded;
}

}  // namespace fornax::tool
