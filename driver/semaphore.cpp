// Semaphores of both kinds, and waiting for them on the host.
#include "driver/semaphore.h"

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {

VkResult Semaphore::Init(const VkSemaphoreCreateInfo& info) {
    uint64_t initial = 0;
    if (const auto* type = FindInChain<VkSemaphoreTypeCreateInfo>(
            info.pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO)) {
        binary_ = type->semaphoreType == VK_SEMAPHORE_TYPE_BINARY;
        initial = binary_ ? 0 : type->initialValue;
    }
    const auto* exported = FindInChain<VkExportSemaphoreCreateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO);
    return payload_.Init(*this, initial, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
                         exported ? exported->handleTypes : 0);
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateSemaphore(VkDevice device,
                  const VkSemaphoreCreateInfo* info,
                  const VkAllocationCallbacks* callbacks,
                  VkSemaphore* semaphore) {
    return CreateObject<Semaphore>(device, callbacks, semaphore, *info);
}

FORNAX_ENTRY_POINT(void)
vkDestroySemaphore(VkDevice device, VkSemaphore semaphore, const VkAllocationCallbacks* callbacks) {
    DestroyObject<Semaphore>(device, callbacks, semaphore);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetSemaphoreCounterValue(VkDevice device, VkSemaphore semaphore, uint64_t* value) {
    FORNAX_RETURN_IF_FAILED(FromHandle<Device>(device)->CheckLost());
    *value = FromHandle<Semaphore>(semaphore)->timeline().value();
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkSignalSemaphore(VkDevice device_handle, const VkSemaphoreSignalInfo* info) {
    const Status status = FromHandle<Semaphore>(info->semaphore)->timeline().Signal(info->value);
    return status ? VK_SUCCESS : Fail(*FromHandle<Device>(device_handle), status.error());
}

FORNAX_ENTRY_POINT(VkResult)
vkWaitSemaphores(VkDevice device_handle, const VkSemaphoreWaitInfo* info, uint64_t timeout_ns) {
    auto& device = *FromHandle<Device>(device_handle);
    const uint32_t count = info->semaphoreCount;
    HostArray<hal::TimelinePoint> points(device.allocator(), count);
    if (!points.Has(count)) {
        return FailOutOfHostMemory(device);
    }
    for (uint32_t i = 0; i < count; ++i) {
        points[i] = FromHandle<Semaphore>(info->pSemaphores[i])->WaitPoint(info->pValues[i]);
    }
    const std::span<const hal::TimelinePoint> all(points.data(), count);
    const bool any = info->flags & VK_SEMAPHORE_WAIT_ANY_BIT;
    const Status status = any ? hal::WaitAny(all, timeout_ns) : hal::WaitAll(all, timeout_ns);
    device.PrintMessages();
    return WaitResult(device, status);
}

}  // namespace fornax::driver
