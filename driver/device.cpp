// Creating devices, and what they answer about themselves.
#include "driver/device.h"

#include <algorithm>

#include "driver/chain.h"
#include "driver/compat.h"
#include "driver/cost_recorder.h"
#include "driver/entry_point.h"
#include "driver/extensions.h"
#include "driver/features.h"
#include "driver/instance.h"
#include "driver/performance_query.h"
#include "driver/supported_api.h"

namespace fornax::driver {

Device::~Device() {
    instance().RemoveDevice(*this);
    PrintMessages();
    for (Queue* queue : queues_) {
        allocator_.Delete(queue);
    }
    if (hal_) {
        EndCounterReport(*hal_);
    }
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
    features_.robustBufferAccess |= GetCompatModes().bounds;
    const auto* cache_control = FindInChain<VkDevicePipelineBinaryInternalCacheControlKHR>(
        info.pNext, VK_STRUCTURE_TYPE_DEVICE_PIPELINE_BINARY_INTERNAL_CACHE_CONTROL_KHR);
    internal_cache_disabled_ = cache_control && cache_control->disableInternalCache;

    if (!memory_reports_.Init(allocator_, info.pNext)) {
        return FailOutOfHostMemory(physical_device_);
    }
    auto settings = ReadNpuSettings(instance());
    if (!settings) {
        return FailWith(physical_device_, VK_ERROR_INITIALIZATION_FAILED, settings.error().message);
    }
    timed_ = settings->timed();
    hal::DeviceOptions options;
    if (timed_) {
        options.observer = std::make_shared<CostRecorder>(std::move(*settings));
    }
    auto hal = hal::CreateDevice("", std::move(options));
    if (!hal) {
        return FailWith(physical_device_, VK_ERROR_INITIALIZATION_FAILED, hal.error().message);
    }
    hal_ = std::move(*hal);
    BeginCounterReport(*hal_);
    auto debug_printf = DebugPrintf::Create(*hal_);
    if (!debug_printf) {
        return Fail(physical_device_, debug_printf.error());
    }
    debug_printf_ = std::move(*debug_printf);
    FORNAX_RETURN_IF_FAILED(CreateQueues(info));
    instance().AddDevice(*this);
    return VK_SUCCESS;
}

VkResult Device::CheckQueues(const VkDeviceQueueCreateInfo& queues, uint32_t already) const {
    // VUID-VkDeviceQueueCreateInfo-queueFamilyIndex-00381 and -queueCount-00382.
    if (queues.queueFamilyIndex >= kQueueFamilies.size()) {
        return Fail(physical_device_, VK_ERROR_INITIALIZATION_FAILED,
                    "Queues of family {} were asked for; there are {} families.",
                    queues.queueFamilyIndex, kQueueFamilies.size());
    }
    const QueueFamily& family = kQueueFamilies[queues.queueFamilyIndex];
    if (queues.queueCount > family.queue_count - already) {
        return Fail(physical_device_, VK_ERROR_INITIALIZATION_FAILED,
                    "{} queues of family {} were asked for; it has {}.",
                    already + queues.queueCount, queues.queueFamilyIndex, family.queue_count);
    }
    const auto* priority = FindInChain<VkDeviceQueueGlobalPriorityCreateInfo>(
        queues.pNext, VK_STRUCTURE_TYPE_DEVICE_QUEUE_GLOBAL_PRIORITY_CREATE_INFO);
    if (!priority || priority->globalPriority == kGlobalPriority) {
        return VK_SUCCESS;
    }
    // "If globalPriorityQuery is enabled and the requested global priority is not reported, the
    // implementation must fail." Without it a lower one asks for no more than it gets.
    if (features_.globalPriorityQuery) {
        return Fail(physical_device_, VK_ERROR_INITIALIZATION_FAILED,
                    "Queues of global priority {} were asked for; all have {}.",
                    static_cast<int>(priority->globalPriority), static_cast<int>(kGlobalPriority));
    }
    if (priority->globalPriority > kGlobalPriority) {
        return Fail(physical_device_, VK_ERROR_NOT_PERMITTED,
                    "Queues of global priority {} were asked for; all have {}.",
                    static_cast<int>(priority->globalPriority), static_cast<int>(kGlobalPriority));
    }
    return VK_SUCCESS;
}

VkResult Device::CreateQueues(const VkDeviceCreateInfo& info) {
    std::array<uint32_t, kQueueFamilies.size()> counts = {};
    uint32_t next = 0;
    for (uint32_t i = 0; i < info.queueCreateInfoCount; ++i) {
        const VkDeviceQueueCreateInfo& queues = info.pQueueCreateInfos[i];
        const uint32_t family = queues.queueFamilyIndex;
        FORNAX_RETURN_IF_FAILED(CheckQueues(queues, family < counts.size() ? counts[family] : 0));
        counts[family] += queues.queueCount;
        for (uint32_t j = 0; j < queues.queueCount; ++j) {
            const VkDeviceQueueInfo2 place{
                .flags = queues.flags, .queueFamilyIndex = family, .queueIndex = j};
            Queue* queue =
                allocator_.New<Queue>(VK_SYSTEM_ALLOCATION_SCOPE_DEVICE, 0, *this, place);
            if (!queue) {
                return FailOutOfHostMemory(physical_device_);
            }
            queues_[next++] = queue;
            FORNAX_RETURN_IF_FAILED(queue->Init());
        }
    }
    return VK_SUCCESS;
}

Queue* Device::FindQueue(const VkDeviceQueueInfo2& info) const {
    const auto found = std::ranges::find_if(
        queues_, [&](const Queue* queue) { return queue && queue->IsAt(info); });
    return found == queues_.end() ? nullptr : *found;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateDevice(VkPhysicalDevice physical_device_handle,
               const VkDeviceCreateInfo* info,
               const VkAllocationCallbacks* callbacks,
               VkDevice* device_handle) {
    auto& physical_device = *FromHandle<PhysicalDevice>(physical_device_handle);
    const Allocator allocator(callbacks, physical_device.instance().allocator());
    Owned device(allocator, allocator.New<Device>(VK_SYSTEM_ALLOCATION_SCOPE_DEVICE, 0,
                                                  physical_device, allocator));
    if (!device) {
        return FailOutOfHostMemory(physical_device);
    }
    FORNAX_RETURN_IF_FAILED(device->Init(*info));
    *device_handle = ToHandle(device.Release());
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyDevice(VkDevice device_handle, const VkAllocationCallbacks* callbacks) {
    auto* device = FromHandle<Device>(device_handle);
    if (device) {
        Allocator(callbacks, device->instance().allocator()).Delete(device);
    }
}

FORNAX_ENTRY_POINT(VkResult) vkDeviceWaitIdle(VkDevice device_handle) {
    auto& device = *FromHandle<Device>(device_handle);
    for (Queue* queue : device.queues()) {
        if (queue) {
            FORNAX_RETURN_IF_FAILED(queue->WaitIdle());
        }
    }
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
