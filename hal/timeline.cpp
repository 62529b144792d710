// Waiting for points of timelines, which the timelines' device does.
#include "hal/timeline.h"

namespace fornax::hal {

Status Timeline::Wait(uint64_t value, uint64_t timeout_ns) const {
    if (this->value() >= value) {
        return OkStatus();
    }
    // The point only borrows this timeline: the caller keeps it alive during the wait.
    const TimelinePoint point{
        std::shared_ptr<Timeline>(std::shared_ptr<Timeline>(), const_cast<Timeline*>(this)), value};
    return WaitFor({&point, 1}, WaitMode::kAll, timeout_ns);
}

Status WaitAll(std::span<const TimelinePoint> points, uint64_t timeout_ns) {
    if (points.empty()) {
        return OkStatus();
    }
    return points.front().timeline->WaitFor(points, WaitMode::kAll, timeout_ns);
}

Status WaitAny(std::span<const TimelinePoint> points, uint64_t timeout_ns) {
    if (points.empty()) {
        return OkStatus();
    }
    return points.front().timeline->WaitFor(points, WaitMode::kAny, timeout_ns);
}

}  // namespace fornax::hal
