// Which handles memory can come from and go to: opaque file descriptors, and pointers of the host.
#pragma once

#include <vulkan/vulkan_core.h>

namespace fornax::driver {

inline constexpr VkExternalMemoryHandleTypeFlags kHostPointerTypes =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT |
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_MAPPED_FOREIGN_MEMORY_BIT_EXT;

// The same for every buffer and every image; a type that is not supported has no features.
VkExternalMemoryProperties ExternalMemoryProperties(VkExternalMemoryHandleTypeFlagBits type);

}  // namespace fornax::driver
