#include "runtime/vulkan/result.h"

#include <fmt/format.h>

namespace fornax::vulkan {

std::string ResultName(VkResult result) {
#define FORNAX_NAME(name) \
    case name:            \
        return #name
    switch (result) {
        FORNAX_NAME(VK_SUCCESS);
        FORNAX_NAME(VK_NOT_READY);
        FORNAX_NAME(VK_TIMEOUT);
        FORNAX_NAME(VK_INCOMPLETE);
        FORNAX_NAME(VK_ERROR_OUT_OF_HOST_MEMORY);
        FORNAX_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY);
        FORNAX_NAME(VK_ERROR_INITIALIZATION_FAILED);
        FORNAX_NAME(VK_ERROR_DEVICE_LOST);
        FORNAX_NAME(VK_ERROR_MEMORY_MAP_FAILED);
        FORNAX_NAME(VK_ERROR_LAYER_NOT_PRESENT);
        FORNAX_NAME(VK_ERROR_EXTENSION_NOT_PRESENT);
        FORNAX_NAME(VK_ERROR_FEATURE_NOT_PRESENT);
        FORNAX_NAME(VK_ERROR_INCOMPATIBLE_DRIVER);
        FORNAX_NAME(VK_ERROR_TOO_MANY_OBJECTS);
        FORNAX_NAME(VK_ERROR_FRAGMENTED_POOL);
        FORNAX_NAME(VK_ERROR_OUT_OF_POOL_MEMORY);
        FORNAX_NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE);
        FORNAX_NAME(VK_ERROR_UNKNOWN);
        default:
            return fmt::format("VkResult {}", static_cast<int>(result));
    }
#undef FORNAX_NAME
}

Error ErrorOf(const char* function, VkResult result) {
    ErrorCode code = ErrorCode::kInternal;
    switch (result) {
        case VK_ERROR_DEVICE_LOST:
            code = ErrorCode::kDeviceLost;
            break;
        case VK_ERROR_OUT_OF_DEVICE_MEMORY:
            code = ErrorCode::kOutOfDeviceMemory;
            break;
        case VK_ERROR_OUT_OF_HOST_MEMORY:
            code = ErrorCode::kOutOfHostMemory;
            break;
        case VK_TIMEOUT:
            code = ErrorCode::kTimeout;
            break;
        default:
            break;
    }
    return {code, fmt::format("{} returned {}.", function, ResultName(result))};
}

}  // namespace fornax::vulkan
