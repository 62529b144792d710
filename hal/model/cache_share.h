// How much data stays in the caches from one command to the next. What is larger is better written
// past them (transfer.cpp).
#pragma once

#include <cstdint>

namespace fornax::hal::model {

// For a device of so many workers.
uint64_t CacheShareBytes(uint32_t worker_count);

}  // namespace fornax::hal::model
