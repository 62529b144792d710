// The counters of one command processor, which alone writes them; anyone may read a snapshot.
#pragma once

#include <atomic>
#include <cstdint>

#include "hal/counters.h"

namespace fornax::hal::model {

// Incremented by one thread: a plain load and store, made atomic for the readers' sake.
class Counter {
  public:
    void Add(uint64_t amount) {
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    uint64_t value() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> value_{0};
};

struct alignas(64) CounterBlock {
    Counter submissions;
    Counter packets;
    Counter dispatches;
    Counter workgroups;
    Counter parallel_dispatches;
    Counter barriers;
    Counter bytes_copied;
    Counter bytes_filled;

    void AddTo(Counters& totals) const {
        totals.submissions += submissions.value();
        totals.packets += packets.value();
        totals.dispatches += dispatches.value();
        totals.workgroups += workgroups.value();
        totals.parallel_dispatches += parallel_dispatches.value();
        totals.barriers += barriers.value();
        totals.bytes_copied += bytes_copied.value();
        totals.bytes_filled += bytes_filled.value();
    }
};

}  // namespace fornax::hal::model
