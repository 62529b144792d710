// Errors to VkResults, and to whoever listens.
#include "driver/report.h"

#include <cstdio>
#include <string>

#include "base/log.h"
#include "driver/debug_utils.h"
#include "driver/instance.h"

namespace fornax::driver {
namespace {

// Returns whether a messenger took it.
bool Send(const Object& origin,
          VkDebugUtilsMessageSeverityFlagBitsEXT severity,
          const char* id,
          const char* message) {
    const VkDebugUtilsObjectNameInfoEXT object{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .objectType = origin.object_type(),
        .objectHandle = origin.handle_bits(),
        .pObjectName = origin.debug_name(),
    };
    const VkDebugUtilsMessengerCallbackDataEXT data{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CALLBACK_DATA_EXT,
        .pMessageIdName = id,
        .pMessage = message,
        .objectCount = 1,
        .pObjects = &object,
    };
    return origin.instance().messengers().Send(severity,
                                               VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT, data);
}

}  // namespace

const char* ResultName(VkResult result) {
#define FORNAX_RESULT(name) \
    case name:              \
        return #name
    switch (result) {
        FORNAX_RESULT(VK_TIMEOUT);
        FORNAX_RESULT(VK_PIPELINE_COMPILE_REQUIRED);
        FORNAX_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY);
        FORNAX_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY);
        FORNAX_RESULT(VK_ERROR_INITIALIZATION_FAILED);
        FORNAX_RESULT(VK_ERROR_DEVICE_LOST);
        FORNAX_RESULT(VK_ERROR_MEMORY_MAP_FAILED);
        FORNAX_RESULT(VK_ERROR_LAYER_NOT_PRESENT);
        FORNAX_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT);
        FORNAX_RESULT(VK_ERROR_FEATURE_NOT_PRESENT);
        FORNAX_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER);
        FORNAX_RESULT(VK_ERROR_FORMAT_NOT_SUPPORTED);
        FORNAX_RESULT(VK_ERROR_FRAGMENTED_POOL);
        FORNAX_RESULT(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS);
        FORNAX_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY);
        FORNAX_RESULT(VK_ERROR_SURFACE_LOST_KHR);
        FORNAX_RESULT(VK_ERROR_UNKNOWN);
        default:
            return "VkResult";
    }
#undef FORNAX_RESULT
}

VkResult ResultOf(ErrorCode code) {
    switch (code) {
        case ErrorCode::kOutOfHostMemory:
            return VK_ERROR_OUT_OF_HOST_MEMORY;
        case ErrorCode::kOutOfDeviceMemory:
            return VK_ERROR_OUT_OF_DEVICE_MEMORY;
        case ErrorCode::kDeviceLost:
            return VK_ERROR_DEVICE_LOST;
        case ErrorCode::kTimeout:
            return VK_TIMEOUT;
        case ErrorCode::kInvalidArgument:
        case ErrorCode::kUnsupported:
        case ErrorCode::kNotFound:
        case ErrorCode::kIo:
        case ErrorCode::kDataLoss:
        case ErrorCode::kInternal:
            // "Any command may return VK_ERROR_UNKNOWN": the message says what it was.
            return VK_ERROR_UNKNOWN;
    }
    return VK_ERROR_UNKNOWN;
}

VkResult FailWith(const Object& origin, VkResult result, std::string_view message) {
    const std::string text(message);
    const bool heard = Send(origin, VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                            ResultName(result), text.c_str());
    const bool out_of_memory =
        result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
        result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL;
    if (!heard && !out_of_memory) {
        LogError("{} ({})", text, ResultName(result));
    }
    return result;
}

VkResult FailOutOfHostMemory(const Object& origin) {
    // No formatting: there is no memory to format with.
    Send(origin, VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
         ResultName(VK_ERROR_OUT_OF_HOST_MEMORY), "The host allocator has no memory left.");
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

void Tell(const Object& origin,
          VkDebugUtilsMessageSeverityFlagBitsEXT severity,
          std::string_view message) {
    if (!Send(origin, severity, "fornax-debug-printf", std::string(message).c_str())) {
        fmt::print(stderr, "{}\n", message);
    }
}

void Warn(const Object& origin, std::string_view message, std::string_view cause) {
    if (!Send(origin, VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT, "fornax-warning",
              std::string(message).c_str())) {
        LogWarningOnce(cause.empty() ? message : cause, "{}", message);
    }
}

}  // namespace fornax::driver
