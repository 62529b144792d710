// Failure at the API's edge: the one place where errors become VkResults, and where they are told.
//
// An error is told where it arises, in a full sentence: to the instance's debug utils messengers,
// and to the log (base/log.h) when no messenger took it. Running out of memory is only told to
// messengers, because applications provoke it on purpose.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <vulkan/vulkan_core.h>

#include "base/result.h"
#include "driver/object.h"

namespace fornax::driver {

// VK_ERROR_FEATURE_NOT_PRESENT -> "VK_ERROR_FEATURE_NOT_PRESENT".
const char* ResultName(VkResult result);

// The VkResult of an error from below the driver.
VkResult ResultOf(ErrorCode code);

// Tells of a failure and returns `result`.
VkResult FailWith(const Object& origin, VkResult result, std::string_view message);

template <typename... Args>
VkResult Fail(const Object& origin,
              VkResult result,
              fmt::format_string<Args...> format,
              Args&&... args) {
    return FailWith(origin, result, fmt::format(format, std::forward<Args>(args)...));
}

inline VkResult Fail(const Object& origin, const Error& error) {
    return FailWith(origin, ResultOf(error.code), error.message);
}

// The result of a wait: running out of time is no error.
inline VkResult WaitResult(const Object& origin, const Status& status) {
    if (status) {
        return VK_SUCCESS;
    }
    return status.error().code == ErrorCode::kTimeout ? VK_TIMEOUT : Fail(origin, status.error());
}

// The driver's own host memory ran out.
VkResult FailOutOfHostMemory(const Object& origin);

// What the user asked to hear: to messengers, and to standard error where none took it.
void Tell(const Object& origin,
          VkDebugUtilsMessageSeverityFlagBitsEXT severity,
          std::string_view message);

// Something that works, but not as the application may think: to messengers, and to the log where
// none took it. The log has one warning for a cause in the life of the process, and the message is
// its cause unless another text is given.
void Warn(const Object& origin, std::string_view message, std::string_view cause = {});

}  // namespace fornax::driver

// For functions that return VkResult: returns the result of `expression` unless it is VK_SUCCESS.
#define FORNAX_RETURN_IF_FAILED(expression)             \
    do {                                                \
        const VkResult fornax_vk_result = (expression); \
        if (fornax_vk_result != VK_SUCCESS)             \
            return fornax_vk_result;                    \
    } while (false)
