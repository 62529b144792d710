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

    // `place` is where vkGetDeviceQueue2 finds it.
    Queue(Device& device, const VkDeviceQueueInfo2& place)
        : DeviceObject(device, kObjectType), place_(place) {}

    VkResult Init();

    // Indices count the queues that were created with the same flags
    // (VUID-VkDeviceQueueInfo2-queueIndex-01843).
    bool IsAt(const VkDeviceQueueInfo2& place) const {
        return place.queueFamilyIndex == place_.queueFamilyIndex &&
               place.queueIndex == place_.queueIndex && place.flags == place_.flags;
    }

    hal::Queue& hal() const { return *hal_; }

    // Blocks until everything submitted is done (vkQueueWaitIdle).
    VkResult WaitIdle();

  private:
    VkDeviceQueueInfo2 place_;
    std::shared_ptr<hal::Queue> hal_;
};

}  // namespace fornax::driver
