// Queues but for submission: how they are had, waited for and labelled.
#include "driver/queue.h"

#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/report.h"

namespace fornax::driver {

VkResult Queue::Init() {
    auto queue = device().hal().CreateQueue();
    if (!queue) {
        return Fail(*this, queue.error());
    }
    hal_ = std::move(*queue);
    return VK_SUCCESS;
}

VkResult Queue::WaitIdle() {
    const Status status = hal_->WaitIdle();
    device().PrintMessages();
    return status ? VK_SUCCESS : Fail(*this, status.error());
}

FORNAX_ENTRY_POINT(void)
vkGetDeviceQueue2(VkDevice device, const VkDeviceQueueInfo2* info, VkQueue* queue) {
    // VUID-VkDeviceQueueInfo2-flags-06225: flags equal those of creation.
    *queue = ToHandle(FromHandle<Device>(device)->FindQueue(*info));
}

FORNAX_ENTRY_POINT(void)
vkGetDeviceQueue(VkDevice device, uint32_t family, uint32_t index, VkQueue* queue) {
    const VkDeviceQueueInfo2 info{
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_INFO_2,
        .queueFamilyIndex = family,
        .queueIndex = index,
    };
    vkGetDeviceQueue2(device, &info, queue);
}

FORNAX_ENTRY_POINT(VkResult) vkQueueWaitIdle(VkQueue queue) {
    return FromHandle<Queue>(queue)->WaitIdle();
}

// Labels of queues are for tools that capture; nothing here reads them.
FORNAX_ENTRY_POINT(void) vkQueueBeginDebugUtilsLabelEXT(VkQueue, const VkDebugUtilsLabelEXT*) {}
FORNAX_ENTRY_POINT(void) vkQueueEndDebugUtilsLabelEXT(VkQueue) {}
FORNAX_ENTRY_POINT(void) vkQueueInsertDebugUtilsLabelEXT(VkQueue, const VkDebugUtilsLabelEXT*) {}

}  // namespace fornax::driver
