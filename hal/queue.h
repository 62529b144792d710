// Queue: takes submissions and runs them one after another, in order.
//
// Queues of one device run side by side; a queue that waits for a timeline never stops another.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "hal/command_stream.h"
#include "hal/timeline.h"

namespace fornax::hal {

// One unit of work: when all waits are reached, the streams run in order, then the signals are made
// in order. Each part may be empty. The spans only need to live through the call of Submit.
struct SubmitInfo {
    std::span<const TimelinePoint> waits;
    std::span<const std::shared_ptr<const CommandStream>> streams;
    std::span<const TimelinePoint> signals;
};

// Made by Device::CreateQueue; keeps its device alive. Destroying it stops it, in bounded time: a
// kernel that runs has a tenth of a second to finish, and is left in its middle after that. If
// anything submitted is left undone (for instance because its wait was never satisfied) the device
// is lost, so that nobody waits for it forever.
class Queue {
  public:
    virtual ~Queue() = default;
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    // Hands the work over and returns without waiting for any of it, however much is pending,
    // except that a caller who is far ahead of the device may be held back for some milliseconds.
    // The queue retains the timelines and streams (and through them the executables) until they are
    // done; a stream's reference is dropped before the submission's signals are made, so that
    // whoever has waited for a signal can reuse the stream's storage. Thread-safe; submissions of
    // several threads run in the order in which the calls took effect. kDeviceLost when the device
    // is lost, kInvalidArgument for a null stream or timeline or one of another device.
    virtual Status Submit(const SubmitInfo& submission) = 0;

    // Blocks until everything submitted before the call is done, with the results of
    // Timeline::Wait. Thread-safe.
    virtual Status WaitIdle(uint64_t timeout_ns = kWaitForever) = 0;

  protected:
    Queue() = default;
};

}  // namespace fornax::hal
