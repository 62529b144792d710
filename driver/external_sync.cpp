// Fences and semaphores as file descriptors (VK_KHR_external_fence_fd,
// VK_KHR_external_semaphore_fd): opaque ones share the payload, sync files are a copy of its state.
#include <unistd.h>

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/fence.h"
#include "driver/semaphore.h"
#include "driver/sync_payload.h"

namespace fornax::driver {

VkResult SyncPayload::Init(const DeviceObject& origin,
                           uint64_t initial_value,
                           VkFlags opaque_bit,
                           VkFlags export_types) {
    hal::Device& hal = origin.device().hal();
    auto timeline = export_types & opaque_bit ? hal.CreateSharedTimeline(initial_value)
                                              : hal.CreateTimeline(initial_value);
    if (!timeline) {
        return Fail(origin, timeline.error());
    }
    permanent_ = std::move(*timeline);
    return VK_SUCCESS;
}

VkResult OpenPayload(const DeviceObject& origin,
                     bool sync_file,
                     int file,
                     std::shared_ptr<hal::Timeline>& payload) {
    hal::Device& hal = origin.device().hal();
    auto opened = !sync_file  ? hal.ImportTimeline(file)
                  : file >= 0 ? hal.ImportSyncFile(file)
                              : hal.CreateTimeline(1);
    if (!opened) {
        if (opened.error().code != ErrorCode::kInvalidArgument) {
            return Fail(origin, opened.error());
        }
        return FailWith(origin, VK_ERROR_INVALID_EXTERNAL_HANDLE, opened.error().message);
    }
    payload = std::move(*opened);
    if (sync_file) {
        payload->target() = 1;
    }
    // "Importing from a file descriptor transfers ownership of the file descriptor"; the payload
    // has one of its own.
    if (file >= 0) {
        close(file);
    }
    return VK_SUCCESS;
}

VkResult GiveFile(const DeviceObject& origin, Result<UniqueFd> file, int* out) {
    if (!file) {
        // "VK_ERROR_TOO_MANY_OBJECTS": descriptors are what runs out here.
        const bool many = file.error().code == ErrorCode::kOutOfHostMemory;
        return many ? FailWith(origin, VK_ERROR_TOO_MANY_OBJECTS, file.error().message)
                    : Fail(origin, file.error());
    }
    *out = file->Release();
    return VK_SUCCESS;
}

// --- Semaphores
// ----------------------------------------------------------------------------------------

FORNAX_ENTRY_POINT(VkResult)
vkGetSemaphoreFdKHR(VkDevice, const VkSemaphoreGetFdInfoKHR* info, int* fd) {
    auto& semaphore = *FromHandle<Semaphore>(info->semaphore);
    if (info->handleType != VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT) {
        return GiveFile(semaphore, semaphore.timeline().ExportFile(), fd);
    }
    // "Exporting a semaphore payload to a handle with copy transference has the same side effects
    // on the source semaphore's payload as executing a semaphore wait operation."
    const hal::TimelinePoint point = semaphore.WaitPoint(0);
    return GiveFile(semaphore, point.timeline->ExportSyncFile(point.value), fd);
}

FORNAX_ENTRY_POINT(VkResult)
vkImportSemaphoreFdKHR(VkDevice, const VkImportSemaphoreFdInfoKHR* info) {
    auto& semaphore = *FromHandle<Semaphore>(info->semaphore);
    std::shared_ptr<hal::Timeline> payload;
    FORNAX_RETURN_IF_FAILED(
        OpenPayload(semaphore, info->handleType == VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT,
                    info->fd, payload));
    semaphore.payload().Import(std::move(payload), info->flags & VK_SEMAPHORE_IMPORT_TEMPORARY_BIT);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceExternalSemaphoreProperties(VkPhysicalDevice,
                                               const VkPhysicalDeviceExternalSemaphoreInfo* info,
                                               VkExternalSemaphoreProperties* properties) {
    const auto* type = FindInChain<VkSemaphoreTypeCreateInfo>(
        info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    const bool binary = !type || type->semaphoreType == VK_SEMAPHORE_TYPE_BINARY;
    properties->exportFromImportedHandleTypes = 0;
    properties->compatibleHandleTypes = 0;
    properties->externalSemaphoreFeatures = 0;
    if (info->handleType != VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT &&
        !(info->handleType == VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT && binary)) {
        return;
    }
    // Each type exports itself alone: a payload that others signal as well gives no sync files.
    properties->exportFromImportedHandleTypes = info->handleType;
    properties->compatibleHandleTypes = info->handleType;
    properties->externalSemaphoreFeatures =
        VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
}

// --- Fences
// ----------------------------------------------------------------------------------------

FORNAX_ENTRY_POINT(VkResult)
vkGetFenceFdKHR(VkDevice, const VkFenceGetFdInfoKHR* info, int* fd) {
    auto& fence = *FromHandle<Fence>(info->fence);
    if (info->handleType != VK_EXTERNAL_FENCE_HANDLE_TYPE_SYNC_FD_BIT) {
        return GiveFile(fence, fence.payload().timeline().ExportFile(), fd);
    }
    const hal::TimelinePoint point = fence.point();
    FORNAX_RETURN_IF_FAILED(GiveFile(fence, point.timeline->ExportSyncFile(point.value), fd));
    // "... has the same side effects on the source fence's payload as executing a fence reset
    // operation", even while its signal is still pending.
    if (!fence.payload().Restore()) {
        (void)fence.payload().NextPoint();
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult) vkImportFenceFdKHR(VkDevice, const VkImportFenceFdInfoKHR* info) {
    auto& fence = *FromHandle<Fence>(info->fence);
    std::shared_ptr<hal::Timeline> payload;
    FORNAX_RETURN_IF_FAILED(OpenPayload(
        fence, info->handleType == VK_EXTERNAL_FENCE_HANDLE_TYPE_SYNC_FD_BIT, info->fd, payload));
    fence.payload().Import(std::move(payload), info->flags & VK_FENCE_IMPORT_TEMPORARY_BIT);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceExternalFenceProperties(VkPhysicalDevice,
                                           const VkPhysicalDeviceExternalFenceInfo* info,
                                           VkExternalFenceProperties* properties) {
    properties->exportFromImportedHandleTypes = 0;
    properties->compatibleHandleTypes = 0;
    properties->externalFenceFeatures = 0;
    if (info->handleType != VK_EXTERNAL_FENCE_HANDLE_TYPE_OPAQUE_FD_BIT &&
        info->handleType != VK_EXTERNAL_FENCE_HANDLE_TYPE_SYNC_FD_BIT) {
        return;
    }
    properties->exportFromImportedHandleTypes = info->handleType;
    properties->compatibleHandleTypes = info->handleType;
    properties->externalFenceFeatures =
        VK_EXTERNAL_FENCE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_FENCE_FEATURE_IMPORTABLE_BIT;
}

}  // namespace fornax::driver
