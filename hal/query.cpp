// Query slots and event cells as both the host and the device use them.
#include "hal/query.h"

#include <atomic>
#include <cstring>

namespace fornax::hal {

namespace {

template <typename T>
std::atomic_ref<T> Atomic(const T& object) {
    return std::atomic_ref<T>(const_cast<T&>(object));
}

void WriteWord(std::byte* place, uint64_t value, bool wide) {
    if (wide) {
        std::memcpy(place, &value, sizeof(uint64_t));
        return;
    }
    // A result that does not fit wraps, which keeps differences right.
    const auto narrow = static_cast<uint32_t>(value);
    std::memcpy(place, &narrow, sizeof(uint32_t));
}

}  // namespace

bool QueryAvailable(const QuerySlot& slot) {
    return Atomic(slot.available).load(std::memory_order_acquire) != 0;
}

void ResetQueries(std::span<QuerySlot> slots) {
    for (QuerySlot& slot : slots) {
        Atomic(slot.available).store(0, std::memory_order_release);
        Atomic(slot.value).store(0, std::memory_order_relaxed);
    }
}

void WriteQuery(QuerySlot& slot, uint64_t value) {
    Atomic(slot.value).store(value, std::memory_order_relaxed);
    Atomic(slot.available).store(1, std::memory_order_release);
}

void BeginCount(QuerySlot& slot, uint64_t reading) {
    Atomic(slot.value).store(uint64_t{0} - reading, std::memory_order_relaxed);
}

void EndCount(QuerySlot& slot, uint64_t reading) {
    WriteQuery(slot, reading + Atomic(slot.value).load(std::memory_order_relaxed));
}

bool WriteQueryResults(std::span<const QuerySlot> slots,
                       std::byte* destination,
                       uint64_t stride_bytes,
                       uint8_t flags) {
    const bool wide = (flags & kQuery64Bit) != 0;
    const uint64_t word_bytes = wide ? 8 : 4;
    bool all_available = true;
    for (const QuerySlot& slot : slots) {
        const bool available = QueryAvailable(slot);
        all_available = all_available && available;
        if (available || (flags & kQueryPartial) != 0) {
            WriteWord(destination,
                      available ? Atomic(slot.value).load(std::memory_order_relaxed) : 0, wide);
        }
        if ((flags & kQueryWithAvailability) != 0) {
            WriteWord(destination + word_bytes, available ? 1 : 0, wide);
        }
        destination += stride_bytes;
    }
    return all_available;
}

bool EventIsSet(const EventCell& cell) {
    return Atomic(cell).load(std::memory_order_acquire) != 0;
}

void SetEvent(EventCell& cell) {
    Atomic(cell).store(1, std::memory_order_release);
}

void ResetEvent(EventCell& cell) {
    Atomic(cell).store(0, std::memory_order_release);
}

}  // namespace fornax::hal
