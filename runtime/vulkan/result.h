// Vulkan's results as errors.
#pragma once

#include <string>

#include <volk.h>

#include "base/result.h"

namespace fornax::vulkan {

// "VK_ERROR_DEVICE_LOST".
std::string ResultName(VkResult result);

// "vkQueueSubmit returned VK_ERROR_DEVICE_LOST." The code tells lost devices, exhausted memory and
// timeouts apart from the rest.
Error ErrorOf(const char* function, VkResult result);

}  // namespace fornax::vulkan

// Calls a Vulkan function and returns its failure from the enclosing function.
#define FORNAX_RETURN_IF_FAILED(function, ...)                            \
    do {                                                                  \
        const VkResult fornax_vk_result = (__VA_ARGS__);                  \
        if (fornax_vk_result != VK_SUCCESS)                               \
            return ::fornax::vulkan::ErrorOf(function, fornax_vk_result); \
    } while (false)
