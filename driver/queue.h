// Queue: the Vulkan handle of a HAL queue. Submission is in queue_submit.cpp.
#pragma once

#include <memory>

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "hal/queue.h"

namespace fornax::driver {

// Lives as long as its device.
class Queue : public DeviceObject {
  public:
    using Handle = VkQueue;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_QUEUE;

    explicit Queue(Device& device) : DeviceObject(device, kObjectType) {}

    VkResult Init();

    hal::Queue& hal() const { return *hal_; }

    // Blocks until everything submitted is done (vkQueueWaitIdle).
    VkResult WaitIdle();

  private:
    std::shared_ptr<hal::Queue> hal_;
};

}  // namespace fornax::driver
