// Timelines: an atomic value each; everything that blocks is in the WaitHub.
#include "hal/timeline.h"

#include <fmt/format.h>

#include "hal/wait_hub.h"

namespace fornax::hal {

Timeline::Timeline(std::shared_ptr<WaitHub> hub, uint64_t initial_value)
    : hub_(std::move(hub)), value_(initial_value) {}

Status Timeline::Signal(uint64_t value) {
    if (hub_->Forked()) {
        return hub_->status();
    }
    uint64_t present = value_.load(std::memory_order_relaxed);
    do {
        if (value <= present) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("The timeline's new value {} is not greater than its value {}.", value,
                            present)};
        }
    } while (!value_.compare_exchange_weak(present, value, std::memory_order_seq_cst,
                                           std::memory_order_relaxed));
    hub_->Notify();
    return OkStatus();
}

void Timeline::Advance(uint64_t value) {
    uint64_t present = value_.load(std::memory_order_relaxed);
    while (value > present) {
        if (value_.compare_exchange_weak(present, value, std::memory_order_seq_cst,
                                         std::memory_order_relaxed)) {
            hub_->Notify();
            return;
        }
    }
}

Status Timeline::Wait(uint64_t value, uint64_t timeout_ns) const {
    if (this->value() >= value) {
        return OkStatus();
    }
    // The point only borrows this timeline: the caller keeps it alive during the wait.
    const TimelinePoint point{
        std::shared_ptr<Timeline>(std::shared_ptr<Timeline>(), const_cast<Timeline*>(this)), value};
    return hub_->Wait({&point, 1}, WaitHub::Mode::kAll, timeout_ns);
}

Status WaitAll(std::span<const TimelinePoint> points, uint64_t timeout_ns) {
    if (points.empty()) {
        return OkStatus();
    }
    return points.front().timeline->hub().Wait(points, WaitHub::Mode::kAll, timeout_ns);
}

Status WaitAny(std::span<const TimelinePoint> points, uint64_t timeout_ns) {
    if (points.empty()) {
        return OkStatus();
    }
    return points.front().timeline->hub().Wait(points, WaitHub::Mode::kAny, timeout_ns);
}

}  // namespace fornax::hal
