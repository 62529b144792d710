// Fence: signalled once a timeline of its own reaches the target of its present use.
#pragma once

#include <atomic>
#include <memory>

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "hal/timeline.h"

namespace fornax::driver {

class Fence : public DeviceObject {
  public:
    using Handle = VkFence;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_FENCE;

    explicit Fence(Device& device) : DeviceObject(device, kObjectType) {}

    VkResult Init(const VkFenceCreateInfo& info);

    // What is reached when the fence is signalled, by a submission or already.
    hal::TimelinePoint point() const { return {timeline_, target_}; }
    bool signalled() const { return timeline_->value() >= target_; }
    void Reset() { target_ = timeline_->value() + 1; }

  private:
    std::shared_ptr<hal::Timeline> timeline_;
    uint64_t target_ = 0;  // resetting is externally synchronised
};

}  // namespace fornax::driver
