// Timeline: a 64-bit value that only grows, signalled by queues and by the host and waited for by
// both. Fences, binary semaphores and timeline semaphores of the driver are all made of it.
//
// A wait may be submitted before the signal that satisfies it. When the device is lost, every wait
// whose value was not reached ends with kDeviceLost.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"

namespace fornax::hal {

class WaitHub;

inline constexpr uint64_t kWaitForever = UINT64_MAX;

// Made by Device::CreateTimeline; reference-counted. Every member may be called from any thread.
class Timeline {
  public:
    Timeline(std::shared_ptr<WaitHub> hub, uint64_t initial_value);
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;

    // The last value reached: one atomic load, made to be polled. What the signaller wrote before
    // the signal is visible to whoever reads the value here.
    uint64_t value() const { return value_.load(std::memory_order_acquire); }

    // The host's signal. A value that is not greater than the present one is kInvalidArgument and
    // changes nothing.
    Status Signal(uint64_t value);

    // Blocks until value() >= `value`: OK; or kTimeout after timeout_ns (0 only polls); or
    // kDeviceLost.
    Status Wait(uint64_t value, uint64_t timeout_ns = kWaitForever) const;

    // The device's signal: raises the value to `value` if that is greater, and wakes the waiters.
    // For backends.
    void Advance(uint64_t value);

    WaitHub& hub() const { return *hub_; }

  private:
    std::shared_ptr<WaitHub> hub_;
    alignas(64) std::atomic<uint64_t> value_;
};

// "The timeline has reached the value."
struct TimelinePoint {
    std::shared_ptr<Timeline> timeline;
    uint64_t value = 0;

    bool Reached() const { return timeline->value() >= value; }
};

// Block until all, or at least one, of the points is reached, with the results of Timeline::Wait.
// All points belong to one device. No points at all: OK at once.
Status WaitAll(std::span<const TimelinePoint> points, uint64_t timeout_ns = kWaitForever);
Status WaitAny(std::span<const TimelinePoint> points, uint64_t timeout_ns = kWaitForever);

}  // namespace fornax::hal
