// How long a thread spins for an event before it sleeps.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "hal/support/futex.h"

namespace fornax::hal {

// The budget follows what waits have taken lately, within bounds. May be shared between threads; a
// lost update only makes the budget less exact.
class AdaptiveSpin {
  public:
    AdaptiveSpin(uint64_t shortest_ns, uint64_t longest_ns)
        : shortest_ns_(shortest_ns), longest_ns_(longest_ns), budget_ns_(longest_ns) {}

    // Spins until done() or the budget is used up; returns the last done().
    template <typename Done>
    bool Until(Done done) {
        constexpr int kChecksPerClock = 32;
        const uint64_t budget_ns = this->budget_ns();
        const uint64_t begin_ns = MonotonicNanoseconds();
        for (;;) {
            for (int i = 0; i < kChecksPerClock; ++i) {
                if (done()) {
                    Grow();
                    return true;
                }
                SpinPause();
            }
            // No sched_yield: on a loaded machine it gives the core away for whole time slices.
            if (MonotonicNanoseconds() - begin_ns >= budget_ns) {
                // Slowly downwards: one long pause between bursts must not cost the next burst.
                budget_ns_.store(std::max(shortest_ns_, budget_ns - budget_ns / 4),
                                 std::memory_order_relaxed);
                return false;
            }
        }
    }

    // For a thread that slept after Until() gave up: when the wait began and when the event came,
    // which is not when the thread ran again: waking takes tens of microseconds, which a spinning
    // thread would have been spared. Without this a budget that has once become shorter than the
    // pauses between events would stay so, however regular they are. An event before the beginning
    // (one of an earlier wait, or 0) tells nothing.
    void EventCame(uint64_t begin_ns, uint64_t event_ns) {
        if (event_ns >= begin_ns && event_ns - begin_ns <= longest_ns_) {
            Grow();
        }
    }

    uint64_t budget_ns() const { return budget_ns_.load(std::memory_order_relaxed); }

  private:
    void Grow() {
        if (const uint64_t budget_ns = this->budget_ns(); budget_ns < longest_ns_) {
            budget_ns_.store(std::min(longest_ns_, budget_ns * 2), std::memory_order_relaxed);
        }
    }

    const uint64_t shortest_ns_;
    const uint64_t longest_ns_;
    std::atomic<uint64_t> budget_ns_;
};

}  // namespace fornax::hal
