// Memory as file descriptors and host pointers (VK_KHR_external_memory_fd,
// VK_EXT_external_memory_host). Importing is part of vkAllocateMemory, in device_memory.cpp.
#include "driver/external_memory.h"

#include "driver/device.h"
#include "driver/device_memory.h"
#include "driver/entry_point.h"
#include "driver/sync_payload.h"

namespace fornax::driver {

VkExternalMemoryProperties ExternalMemoryProperties(VkExternalMemoryHandleTypeFlagBits type) {
    const auto types = static_cast<VkExternalMemoryHandleTypeFlags>(type);
    // "compatibleHandleTypes must include at least handleType."
    VkExternalMemoryProperties properties = {.compatibleHandleTypes = types};
    if (type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT) {
        properties.externalMemoryFeatures =
            VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
        properties.exportFromImportedHandleTypes = types;
    } else if (types & kHostPointerTypes) {
        properties.externalMemoryFeatures = VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    }
    return properties;
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceExternalBufferProperties(VkPhysicalDevice,
                                            const VkPhysicalDeviceExternalBufferInfo* info,
                                            VkExternalBufferProperties* properties) {
    properties->externalMemoryProperties = ExternalMemoryProperties(info->handleType);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetMemoryFdKHR(VkDevice, const VkMemoryGetFdInfoKHR* info, int* fd) {
    auto& memory = *FromHandle<DeviceMemory>(info->memory);
    return GiveFile(memory, memory.hal().ExportFile(), fd);
}

// VUID-vkGetMemoryFdPropertiesKHR-handleType-00674: not for opaque descriptors, and there are no
// others.
FORNAX_ENTRY_POINT(VkResult)
vkGetMemoryFdPropertiesKHR(VkDevice device,
                           VkExternalMemoryHandleTypeFlagBits type,
                           int,
                           VkMemoryFdPropertiesKHR*) {
    return Fail(*FromHandle<Device>(device), VK_ERROR_INVALID_EXTERNAL_HANDLE,
                "A file descriptor of handle type {:#x} was asked about; only opaque ones can be "
                "imported.",
                static_cast<unsigned>(type));
}

FORNAX_ENTRY_POINT(VkResult)
vkGetMemoryHostPointerPropertiesEXT(VkDevice device,
                                    VkExternalMemoryHandleTypeFlagBits type,
                                    const void*,
                                    VkMemoryHostPointerPropertiesEXT* properties) {
    if (!(type & kHostPointerTypes)) {
        return Fail(*FromHandle<Device>(device), VK_ERROR_INVALID_EXTERNAL_HANDLE,
                    "A host pointer of handle type {:#x} was asked about.",
                    static_cast<unsigned>(type));
    }
    properties->memoryTypeBits = 1;
    return VK_SUCCESS;
}

}  // namespace fornax::driver
