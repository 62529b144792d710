// The cache around the compiler.
#include "compiler/graph/compile_cached.h"

#include <optional>

#include <fmt/format.h>

#include "base/log.h"
#include "compiler/graph/graph_hash.h"

namespace fornax::graph {
namespace {

// The plan that is stored for the graph with this hash, if it is whole.
std::optional<Plan> Find(DiskCache& cache, const Hash128& hash) {
    std::optional<std::vector<std::byte>> entry = cache.Get(kPlanCacheKind, hash);
    if (!entry) {
        return std::nullopt;
    }
    const auto owner = std::make_shared<const std::vector<std::byte>>(*std::move(entry));
    const Bytes file({reinterpret_cast<const uint8_t*>(owner->data()), owner->size()}, owner);
    // The cache has verified a checksum of all bytes.
    Result<Plan> plan = ParsePlan(file, WeightCheck::kTrust);
    if (plan.ok() && plan->graph_hash == hash.ToHex()) {
        return *std::move(plan);
    }
    LogWarning("The cached plan {} is replaced: {}", hash.ToHex(),
               plan.ok() ? "It belongs to another graph." : plan.error().message);
    return std::nullopt;
}

bool Store(DiskCache& cache, const Hash128& hash, const Plan& plan) {
    // What could not be read again would be replaced each time.
    Status valid = ValidatePlan(plan);
    Result<std::vector<std::byte>> file =
        valid.ok() ? SerializePlan(plan) : std::move(valid).error();
    if (!file.ok()) {
        LogWarning("The plan of {} is not cached: {}", plan.name, file.error().message);
        return false;
    }
    return cache.Put(kPlanCacheKind, hash, *file);
}

}  // namespace

Result<CachedPlan> CompileCached(Graph graph, const CompileOptions& options, DiskCache& cache) {
    const Hash128 hash = HashGraph(graph, options);
    if (std::optional<Plan> plan = Find(cache, hash)) {
        return CachedPlan{*std::move(plan), true, true};
    }
    FORNAX_ASSIGN_OR_RETURN(Plan plan, Compile(std::move(graph), options));
    plan.graph_hash = hash.ToHex();
    const bool is_stored = Store(cache, hash, plan);
    return CachedPlan{std::move(plan), false, is_stored};
}

}  // namespace fornax::graph
