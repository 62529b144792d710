// Entries of plans and of weights.
#include "compiler/graph/plan/plan_cache.h"

#include <map>

#include <fmt/format.h>

#include "base/log.h"

namespace fornax::graph {
namespace {

Bytes FindWeight(DiskCache& cache, const Hash128& digest) {
    const std::optional<MappedPayload> entry = cache.Map(kWeightCacheKind, digest);
    if (!entry) {
        return nullptr;
    }
    return {{reinterpret_cast<const uint8_t*>(entry->bytes.data()), entry->bytes.size()},
            entry->owner};
}

Status StoreWeights(DiskCache& cache, Plan& plan) {
    // Blocks may share their bytes.
    std::map<Hash128, Bytes> stored;
    for (PlanBlock& block : plan.blocks) {
        if (!block.data || block.data->size() < kMinWeightEntryBytes) {
            continue;
        }
        const std::span<const std::byte> bytes = std::as_bytes(*block.data);
        const Hash128 digest = HashBytes(bytes);
        Bytes& entry = stored[digest];
        if (!entry) {
            entry = FindWeight(cache, digest);
        }
        if (!entry && cache.Put(kWeightCacheKind, digest, bytes)) {
            entry = FindWeight(cache, digest);
        }
        if (!entry || entry->size() != bytes.size()) {
            return Error{ErrorCode::kIo, fmt::format("The weight {} of {} bytes is not stored.",
                                                     block.name, bytes.size())};
        }
        block.data = entry;
    }
    return OkStatus();
}

Status Store(DiskCache& cache, const Hash128& key, Plan& plan) {
    // What could not be read again would be replaced each time.
    FORNAX_RETURN_IF_ERROR(ValidatePlan(plan));
    uint64_t size_bytes = 0;
    for (const PlanBlock& block : plan.blocks) {
        size_bytes += block.data ? block.data->size() : 0;
    }
    const uint64_t limit_bytes = cache.limit_bytes() / 2;
    if (limit_bytes != 0 && size_bytes > limit_bytes) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("Its weights are {} bytes; half of what the cache may take is {}.",
                                 size_bytes, limit_bytes)};
    }
    FORNAX_RETURN_IF_ERROR(StoreWeights(cache, plan));
    FORNAX_ASSIGN_OR_RETURN(const std::vector<std::byte> file,
                            SerializePlan(plan, kMinWeightEntryBytes));
    if (!cache.Put(kPlanCacheKind, key, file)) {
        return Error{ErrorCode::kIo, "The cache did not take it."};
    }
    return OkStatus();
}

}  // namespace

std::optional<Plan> FindPlan(DiskCache& cache, const Hash128& key) {
    const std::optional<MappedPayload> entry = cache.Map(kPlanCacheKind, key);
    if (!entry) {
        return std::nullopt;
    }
    const Bytes file({reinterpret_cast<const uint8_t*>(entry->bytes.data()), entry->bytes.size()},
                     entry->owner);
    // The cache has verified a checksum of all bytes.
    Result<Plan> plan = ParsePlan(file, WeightCheck::kTrust,
                                  [&](const Hash128& digest) { return FindWeight(cache, digest); });
    if (plan.ok() && plan->graph_hash == key.ToHex()) {
        return *std::move(plan);
    }
    if (plan.ok() || plan.error().code != ErrorCode::kNotFound) {
        LogWarning("The cached plan {} is replaced: {}", key.ToHex(),
                   plan.ok() ? "It belongs to another key." : plan.error().message);
    }
    return std::nullopt;
}

bool StorePlan(DiskCache& cache, const Hash128& key, Plan& plan) {
    if (cache.directory().empty()) {
        return false;  // whoever found no directory has warned
    }
    const Status stored = Store(cache, key, plan);
    if (!stored.ok()) {
        LogWarningOnce(fmt::format("plan {}", key.ToHex()), "The plan of {} is not cached: {}",
                       plan.name, stored.error().message);
    }
    return stored.ok();
}

}  // namespace fornax::graph
