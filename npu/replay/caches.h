// What caches make of the bytes that a dispatch asks for, in the order in which dispatches were
// submitted.
#pragma once

#include <vector>

#include "npu/replay/records.h"
#include "npu/units/memory_cache.h"

namespace fornax::npu {

// The caches of a machine: what all cores share, and what the cores have of their own together.
struct Caches {
    explicit Caches(const Description& description)
        : shared(description.cache.bytes),
          cores(description.cache.core_bytes * description.cores.count()) {}
    MemoryCache shared;
    MemoryCache cores;
};

// What caches make of bytes: those that DRAM and the network would move without, and those that
// they move.
struct ServedBytes {
    CacheTraffic asked;
    CacheTraffic moved;
    uint64_t asked_network = 0;
    uint64_t moved_network = 0;
    uint64_t asked_apart = 0;  // of what is read
    uint64_t moved_apart = 0;
    uint64_t asked_far = 0;
    uint64_t moved_far = 0;
    ServedBytes& operator+=(const ServedBytes& other);
};
struct ServedDispatch {
    std::vector<ServedBytes> passes;
    bool holds_operands = false;  // of products, which cores read again
};

// In the order in which dispatches were submitted. A dispatch without passes has one.
ServedDispatch ServeFromCaches(const Description& description,
                               const DispatchRecord& dispatch,
                               Caches& caches);

// Without what a workgroup finds in its part of the scratchpad, because it has accessed it before.
Access Compulsory(const Description& description, const DispatchRecord& dispatch, Access access);

}  // namespace fornax::npu
