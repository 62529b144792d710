// Semaphore: a timeline, or a binary semaphore, which is a timeline that every signal raises by
// one.
//
// A binary semaphore's wait is submitted after the signal that it waits for
// (VUID-vkQueueSubmit2-semaphore-03873), so it waits for the last value that was submitted.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "driver/sync_payload.h"
#include "hal/timeline.h"

namespace fornax::driver {

class Semaphore : public DeviceObject {
  public:
    using Handle = VkSemaphore;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_SEMAPHORE;

    explicit Semaphore(Device& device) : DeviceObject(device, kObjectType) {}

    VkResult Init(const VkSemaphoreCreateInfo& info);

    hal::Timeline& timeline() const { return payload_.timeline(); }
    SyncPayload& payload() { return payload_; }

    // What a submission that waits for `value` (ignored for binary semaphores) waits for, and what
    // one that signals it reaches. "If a temporary payload was imported, the wait restores the
    // permanent one."
    hal::TimelinePoint WaitPoint(uint64_t value) {
        if (!binary_) {
            return {payload_.shared_timeline(), value};
        }
        hal::TimelinePoint point = payload_.Point();
        payload_.Restore();
        return point;
    }
    hal::TimelinePoint SignalPoint(uint64_t value) {
        return binary_ ? payload_.NextPoint()
                       : hal::TimelinePoint{payload_.shared_timeline(), value};
    }

  private:
    SyncPayload payload_;
    bool binary_ = true;
};

}  // namespace fornax::driver
