// Fence: signalled once a timeline of its own reaches the target of its present use.
#pragma once

#include <vulkan/vulkan_core.h>

#include <atomic>
#include <cstdint>

#include "driver/object.h"
#include "driver/sync_payload.h"

namespace fornax::driver {

class Fence : public DeviceObject {
  public:
    using Handle = VkFence;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_FENCE;

    explicit Fence(Device& device) : DeviceObject(device, kObjectType) {}

    VkResult Init(const VkFenceCreateInfo& info);

    SyncPayload& payload() { return payload_; }

    // What is reached when the fence is signalled, by a submission or already.
    hal::TimelinePoint point() const { return payload_.Point(); }
    bool signalled() const { return payload_.IsSet(); }
    // Who asks in a loop whether the fence is signalled takes a processor from the device's
    // workers, which would be sooner done with it: from some polls of one use on, one waits a
    // little.
    void PauseBetweenPolls();
    // "... that fence's prior permanent payload is first restored."
    void Reset() {
        polls_.store(0, std::memory_order_relaxed);
        payload_.Restore();
        payload_.Unset();
    }

  private:
    SyncPayload payload_;
    std::atomic<uint32_t> polls_ = 0;  // of this use that found it unsignalled
};

}  // namespace fornax::driver
