#include "hal/model/cache_share.h"

#include <unistd.h>

#include <algorithm>

namespace fornax::hal::model {

uint64_t CacheShareBytes(uint32_t worker_count) {
    // A virtual machine of a few processors reports the last-level cache of the whole socket, which
    // other machines fill as well: on one of two processors with "300 MiB", a copy of 16 MiB was
    // found in the cache afterwards and one of 32 MiB was not. Real processors have 2 to 12 MiB a
    // core.
    constexpr uint64_t kMostBytesPerWorker = 16 << 20;
    constexpr uint64_t kTypicalBytes = 32 << 20;
    static const long reported_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    const uint64_t cache_bytes =
        reported_bytes > 0 ? static_cast<uint64_t>(reported_bytes) : kTypicalBytes;
    return std::min(cache_bytes, std::max(worker_count, 1u) * kMostBytesPerWorker);
}

}  // namespace fornax::hal::model
