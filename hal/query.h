// Query slots and event cells: the two things in device memory, besides kernels' data, whose layout
// the device and the driver share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace fornax::hal {

// One query in device memory, 16-byte aligned. Both fields are accessed atomically: the device
// writes the value and then makes it available.
struct QuerySlot {
    uint64_t value = 0;
    uint64_t available = 0;  // 0 or 1
};
static_assert(sizeof(QuerySlot) == 16);

// One event in device memory, 4-byte aligned, 0 (reset) or 1 (set).
using EventCell = uint32_t;

// How query results are written out.
enum QueryResultFlags : uint8_t {
    kQuery64Bit = 1,             // results and availability are 64-bit words, else 32-bit
    kQueryWait = 2,              // wait until each query is available
    kQueryWithAvailability = 4,  // a word that is not 0 when available follows the result
    kQueryPartial = 8,           // write a value between 0 and the final one when not available
};
inline constexpr uint8_t kQueryResultFlagMask = 15;

// Bytes that one query's result takes.
constexpr uint64_t QueryResultBytes(uint8_t flags) {
    return (flags & kQuery64Bit ? 8u : 4u) * (flags & kQueryWithAvailability ? 2u : 1u);
}

// Host-side operations on slots; thread-safe against the device's.
bool QueryAvailable(const QuerySlot& slot);
void ResetQueries(std::span<QuerySlot> slots);
void WriteQuery(QuerySlot& slot, uint64_t value);
// A count of something between two readings of a counter; modulo 2^64. The end makes it available.
void BeginCount(QuerySlot& slot, uint64_t reading);
void EndCount(QuerySlot& slot, uint64_t reading);

// Writes the results as they are now, `stride_bytes` apart, and never waits (kQueryWait is the
// caller's affair). Without kQueryPartial the result of an unavailable query is left unwritten.
// Returns true when every query was available.
bool WriteQueryResults(std::span<const QuerySlot> slots,
                       std::byte* destination,
                       uint64_t stride_bytes,
                       uint8_t flags);

// Host-side operations on events; thread-safe against the device's. A queue that waits for the
// event notices the change within about a millisecond.
bool EventIsSet(const EventCell& cell);
void SetEvent(EventCell& cell);
void ResetEvent(EventCell& cell);

}  // namespace fornax::hal
