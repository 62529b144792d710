// Creating devices, and what they answer about themselves.
#include "driver/device.h"

#include "driver/entry_point.h"
#include "driver/extensions.h"
#include "driver/features.h"
#include "driver/instance.h"
#include "driver/supported_api.h"

namespace fornax::driver {

Device::~Device() {
    PrintMessages();
    for (Queue* queue : queues_)
        allocator_.Delete(queue);
    // Its values live in this allocator, which must still be there.
    ReleasePrivateData();
}

VkResult Device::Init(const VkDeviceCreateInfo& info) {
    api_ = instance().api();
    api_.device = {};
    FORNAX_RETURN_IF_FAILED(
        EnableExtensions(physical_device_, AllDeviceExtensions(), SupportedApi().device,
                         {info.ppEnabledExtensionNames, info.enabledExtensionCount}, api_.device));
    FORNAX_RETURN_IF_FAILED(ReadEnabledFeatures(physical_device_, info, features_));

    auto hal = hal::CreateDevice("");
    if (!hal) {
        return FailWith(physical_device_, VK_ERROR_INITIALIZATION_FAILED, hal.error().message);
    }
    hal_ = std::move(*hal);
    auto debug_printf = DebugPrintf::Create(*hal_);
    if (!debug_printf)
        return Fail(physical_device_, debug_printf.error());
    debug_printf_ = std::move(*debug_printf);
    return CreateQueues(info);
}

VkResult Device::CreateQueues(const VkDeviceCreateInfo& info) {
    for (uint32_t i = 0; i < info.queueCreateInfoCount; ++i) {
        const VkDeviceQueueCreateInfo& queues = info.pQueueCreateInfos[i];
        // VUID-VkDeviceQueueCreateInfo-queueFamilyIndex-00381 and -queueCount-00382.
        if (queues.queueFamilyIndex != 0 || queues.queueCount > kQueueCount) {
            return Fail(physical_device_, VK_ERROR_INITIALIZATION_FAILED,
                        "{} queues of family {} were asked for; there are {} queues of family 0.",
                        queues.queueCount, queues.queueFamilyIndex, kQueueCount);
        }
        for (uint32_t j = 0; j < queues.queueCount; ++j) {
            queues_[j] = allocator_.New<Queue>(VK_SYSTEM_ALLOCATION_SCOPE_DEVICE, 0, *this);
            if (!queues_[j])
                return FailOutOfHostMemory(physical_device_);
            FORNAX_RETURN_IF_FAILED(queues_[j]->Init());
        }
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateDevice(VkPhysicalDevice physical_device_handle,
               const VkDeviceCreateInfo* info,
               const VkAllocationCallbacks* callbacks,
               VkDevice* device_handle) {
    auto& physical_device = *FromHandle<PhysicalDevice>(physical_device_handle);
    const Allocator allocator(callbacks, physical_device.instance().allocator());
    auto* device =
        allocator.New<Device>(VK_SYSTEM_ALLOCATION_SCOPE_DEVICE, 0, physical_device, allocator);
    if (!device)
        return FailOutOfHostMemory(physical_device);
    if (const VkResult result = device->Init(*info); result != VK_SUCCESS) {
        allocator.Delete(device);
        return result;
    }
    *device_handle = ToHandle(device);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyDevice(VkDevice device_handle, const VkAllocationCallbacks* callbacks) {
    auto* device = FromHandle<Device>(device_handle);
    if (device)
        Allocator(callbacks, device->instance().allocator()).Delete(device);
}

FORNAX_ENTRY_POINT(VkResult) vkDeviceWaitIdle(VkDevice device_handle) {
    auto& device = *FromHandle<Device>(device_handle);
    for (uint32_t i = 0; Queue* queue = device.queue(i); ++i)
        FORNAX_RETURN_IF_FAILED(queue->WaitIdle());
    return VK_SUCCESS;
}

// A device group has one device (VK_KHR_device_group).
FORNAX_ENTRY_POINT(void)
vkGetDeviceGroupPeerMemoryFeatures(VkDevice,
                                   uint32_t,
                                   uint32_t,
                                   uint32_t,
                                   VkPeerMemoryFeatureFlags* features) {
    *features = VK_PEER_MEMORY_FEATURE_COPY_SRC_BIT | VK_PEER_MEMORY_FEATURE_COPY_DST_BIT |
                VK_PEER_MEMORY_FEATURE_GENERIC_SRC_BIT | VK_PEER_MEMORY_FEATURE_GENERIC_DST_BIT;
}

}  // namespace fornax::driver
