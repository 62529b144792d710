// Plans kept between processes.
//
// Large weights are entries of their own, under digests of their bytes: the plans of one model for
// several sizes share them, on disk and, mapped, in memory.
#pragma once

#include "base/disk_cache.h"
#include "compiler/graph/plan/plan_file.h"

namespace fornax::graph {

// Plan files without large weights; they hold no code.
inline constexpr CacheKind kPlanCacheKind = {
    .name = "graphplan",
    .extension = "plan",
    .version = kPlanFormatVersion,
    .executable = false,
    .mapped = true,
};

// The bytes of a weight, as a plan's block has them.
inline constexpr CacheKind kWeightCacheKind = {
    .name = "graphweight",
    .extension = "bin",
    .version = 1,
    .executable = false,
    .mapped = true,
};

// Weights of so many bytes are entries of their own.
inline constexpr uint64_t kMinWeightEntryBytes = 64 << 10;

// The plan that StorePlan() stored under the key, if it and its weights are whole. Its weights are
// mapped. A damaged entry counts as none, with a warning.
std::optional<Plan> FindPlan(DiskCache& cache, const Hash128& key);

// Stores a plan whose graph_hash is the key. Weights that became entries are mapped in their place,
// so that `plan` holds no memory for them. False, with a warning, if it cannot be stored: it would
// not pass ValidatePlan(), takes more than half of what the cache may, or the cache cannot be used.
bool StorePlan(DiskCache& cache, const Hash128& key, Plan& plan);

}  // namespace fornax::graph
