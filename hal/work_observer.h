// Who wants to know what a device does: makers of cost records, and of the time that they take on
// another machine (npu/, which no backend knows).
//
// A device that has an observer tells it of each piece of work once that is done, on the thread of
// the queue, and takes the time of TIMESTAMP packets from it. Without one nothing is counted.
// Queues call at the same time; calls of one queue come one after another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hal/executable.h"
#include "hal/kernel_abi.h"
#include "hal/query.h"

namespace fornax::hal {

class Timeline;

enum class ObservedCopy : uint8_t { kCopy, kUpdate, kFill };

class WorkObserver {
  public:
    virtual ~WorkObserver() = default;

    // Begins a submission, in the order in which the queue takes them; `queue` counts the device's
    // queues from 0.
    virtual void BeginSubmission(uint32_t queue) = 0;
    // `region_counts`: KernelDesc::region_counters words, of all workers. `frame`: what the kernel
    // was given, with the descriptor sets of KernelDesc::descriptor_set_mask.
    virtual void Dispatch(uint32_t queue,
                          const Executable& executable,
                          const DispatchFrame& frame,
                          uint64_t workgroups,
                          std::span<const uint64_t> region_counts) = 0;
    virtual void Copy(uint32_t queue, ObservedCopy kind, uint64_t bytes) = 0;
    virtual void Barrier(uint32_t queue) = 0;
    // When the wait is over.
    virtual void Wait(uint32_t queue, const Timeline& timeline, uint64_t value) = 0;
    // Before anybody sees it.
    virtual void Signal(uint32_t queue, const Timeline& timeline, uint64_t value) = 0;

    // A TIMESTAMP. False: the device's own clock is meant. Otherwise the slot is written by
    // Flush() at the latest; it lives until then.
    virtual bool Timestamp(uint32_t queue, QuerySlot& slot) = 0;
    // COUNT_BEGIN or COUNT_END of the observer's counter of this number: the slot is written like
    // that of a timestamp. False: there is no such counter.
    virtual bool Count(uint32_t queue, QuerySlot& slot, uint32_t counter, bool begins) = 0;
    // Somebody may look at the queue's timestamps.
    virtual void Flush(uint32_t queue) = 0;
    // The queue has nothing to do: does a part of what the observer left for such times. False:
    // nothing is left.
    virtual bool Idle(uint32_t queue) = 0;
    // Device::TimestampNow(); nothing: the device's own clock. From any thread.
    virtual std::optional<uint64_t> Now() = 0;
};

}  // namespace fornax::hal
