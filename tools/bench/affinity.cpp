#include "tools/bench/affinity.h"

#include <utility>

#include <fmt/format.h>

namespace fornax::bench {

Result<ScopedAffinity> ScopedAffinity::Create(int threads) {
    ScopedAffinity affinity;
    if (threads == 0) {
        return affinity;
    }
    CPU_ZERO(&affinity.previous_);
    if (sched_getaffinity(0, sizeof(affinity.previous_), &affinity.previous_) != 0) {
        return Error{ErrorCode::kInternal, "The system does not tell which processors there are."};
    }
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    int left = threads;
    for (int cpu = 0; cpu < CPU_SETSIZE && left > 0; ++cpu) {
        if (CPU_ISSET(cpu, &affinity.previous_)) {
            CPU_SET(cpu, &chosen);
            --left;
        }
    }
    if (left > 0) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{} threads are asked for, and there are processors for {}.",
                                 threads, threads - left)};
    }
    if (sched_setaffinity(0, sizeof(chosen), &chosen) != 0) {
        return Error{ErrorCode::kInternal, "The system does not let a process choose processors."};
    }
    affinity.changed_ = true;
    return affinity;
}

ScopedAffinity::ScopedAffinity(ScopedAffinity&& other) noexcept
    : previous_(other.previous_), changed_(std::exchange(other.changed_, false)) {}

ScopedAffinity::~ScopedAffinity() {
    if (changed_) {
        sched_setaffinity(0, sizeof(previous_), &previous_);
    }
}

}  // namespace fornax::bench
