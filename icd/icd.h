// The symbols that the shared library exports: the interface between the Vulkan loader and drivers
// (LoaderDriverInterface.md of the loader). Programs may also use the library without the loader:
// vk_icdGetInstanceProcAddr finds everything.
#pragma once

#include <vulkan/vulkan_core.h>

#define FORNAX_EXPORT extern "C" __attribute__((visibility("default")))

FORNAX_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t* version);

FORNAX_EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
vk_icdGetInstanceProcAddr(VkInstance instance, const char* name);

FORNAX_EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
vk_icdGetPhysicalDeviceProcAddr(VkInstance instance, const char* name);
