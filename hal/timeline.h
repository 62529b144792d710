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

#include "base/file.h"
#include "base/result.h"

namespace fornax::hal {

struct TimelinePoint;

inline constexpr uint64_t kWaitForever = UINT64_MAX;

// Whether a wait for several points ends when all are reached, or at least one.
enum class WaitMode : uint8_t { kAll, kAny };

// Made by Device::CreateTimeline and its neighbours; reference-counted. Every member may be called
// from any thread. A timeline belongs to one device; one that is shared has a Timeline in each.
class Timeline {
  public:
    virtual ~Timeline() = default;
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;

    // The last value reached: one atomic load, made to be polled. What the signaller wrote before
    // the signal is visible to whoever reads the value here.
    uint64_t value() const { return words_->value.load(std::memory_order_acquire); }

    // A word for the timeline's users, shared as the value is, which the device never reads: the
    // value that is being worked towards. What uses a timeline as a flag keeps its state here.
    std::atomic<uint64_t>& target() const { return words_->target; }

    // The host's signal. A value that is not greater than the present one is kInvalidArgument and
    // changes nothing.
    virtual Status Signal(uint64_t value) = 0;

    // Blocks until value() >= `value`: OK; or kTimeout after timeout_ns (0 only polls); or
    // kDeviceLost.
    Status Wait(uint64_t value, uint64_t timeout_ns = kWaitForever) const;

    // The device's signal: raises the value to `value` if that is greater, and wakes the waiters.
    // For backends.
    virtual void Advance(uint64_t value) = 0;

    // What ImportTimeline takes; kUnsupported for a timeline that is not shared.
    virtual Result<UniqueFd> ExportFile() const = 0;

    // A file that becomes readable, for good, when `value` is reached, and is hung up when that
    // will not happen any more because the device or the process is gone: for poll(), and for
    // ImportSyncFile of any device in any process. kUnsupported for a shared timeline.
    virtual Result<UniqueFd> ExportSyncFile(uint64_t value) = 0;

    // WaitAll and WaitAny of points of this timeline's device, none of which is null.
    virtual Status WaitFor(std::span<const TimelinePoint> points,
                           WaitMode mode,
                           uint64_t timeout_ns) const = 0;

    struct Words {
        std::atomic<uint64_t> value;
        std::atomic<uint64_t> target;
    };

  protected:
    // The words live at least as long as the timeline.
    explicit Timeline(Words* words) : words_(words) {}

    Words& words() const { return *words_; }

  private:
    Words* const words_;
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
