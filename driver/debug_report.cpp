// From messages of debug utils to those of debug reports, and back.
#include "driver/debug_report.h"

#include "driver/entry_point.h"
#include "driver/instance.h"
#include "driver/report.h"

namespace fornax::driver {
namespace {

constexpr VkDebugUtilsMessageTypeFlagsEXT kAllTypes =
    VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
    VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;

struct Kind {
    VkDebugReportFlagsEXT report;
    VkDebugUtilsMessageSeverityFlagBitsEXT severity;
};
// The first that fits decides.
constexpr Kind kKinds[] = {
    {VK_DEBUG_REPORT_ERROR_BIT_EXT, VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT},
    {VK_DEBUG_REPORT_WARNING_BIT_EXT, VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT},
    {VK_DEBUG_REPORT_PERFORMANCE_WARNING_BIT_EXT, VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT},
    {VK_DEBUG_REPORT_INFORMATION_BIT_EXT, VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT},
    {VK_DEBUG_REPORT_DEBUG_BIT_EXT, VK_DEBUG_UTILS_MESSAGE_SEVERITY_VERBOSE_BIT_EXT},
};

VkDebugReportFlagsEXT ReportFlagOf(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                   VkDebugUtilsMessageTypeFlagsEXT types) {
    if (severity == VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT &&
        types == VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT) {
        return VK_DEBUG_REPORT_PERFORMANCE_WARNING_BIT_EXT;
    }
    for (const Kind& kind : kKinds) {
        if (kind.severity == severity) {
            return kind.report;
        }
    }
    return VK_DEBUG_REPORT_INFORMATION_BIT_EXT;
}

// The types of Vulkan 1.0 have the same numbers in both extensions; others are unknown to reports.
VkDebugReportObjectTypeEXT ReportType(VkObjectType type) {
    static_assert(static_cast<int>(VK_DEBUG_REPORT_OBJECT_TYPE_COMMAND_POOL_EXT) ==
                  static_cast<int>(VK_OBJECT_TYPE_COMMAND_POOL));
    return type <= VK_OBJECT_TYPE_COMMAND_POOL ? static_cast<VkDebugReportObjectTypeEXT>(type)
                                               : VK_DEBUG_REPORT_OBJECT_TYPE_UNKNOWN_EXT;
}

VKAPI_ATTR VkBool32 VKAPI_CALL HandOn(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                      VkDebugUtilsMessageTypeFlagsEXT types,
                                      const VkDebugUtilsMessengerCallbackDataEXT* data,
                                      void* user) {
    const auto& report = *static_cast<const VkDebugReportCallbackCreateInfoEXT*>(user);
    const VkDebugReportFlagsEXT flag = ReportFlagOf(severity, types);
    if (!(report.flags & flag)) {
        return VK_FALSE;
    }
    const bool about = data->objectCount > 0;
    return report.pfnCallback(
        flag,
        about ? ReportType(data->pObjects[0].objectType) : VK_DEBUG_REPORT_OBJECT_TYPE_UNKNOWN_EXT,
        about ? data->pObjects[0].objectHandle : 0, 0, data->messageIdNumber,
        data->pMessageIdName ? data->pMessageIdName : "Fornax", data->pMessage, report.pUserData);
}

}  // namespace

VkDebugUtilsMessengerCreateInfoEXT MessengerOf(VkDebugReportCallbackCreateInfoEXT& report) {
    VkDebugUtilsMessengerCreateInfoEXT messenger{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageType = kAllTypes,
        .pfnUserCallback = HandOn,
        .pUserData = &report,
    };
    for (const Kind& kind : kKinds) {
        if (report.flags & kind.report) {
            messenger.messageSeverity |= kind.severity;
        }
    }
    return messenger;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateDebugReportCallbackEXT(VkInstance instance_handle,
                               const VkDebugReportCallbackCreateInfoEXT* info,
                               const VkAllocationCallbacks* callbacks,
                               VkDebugReportCallbackEXT* handle) {
    auto& instance = *FromHandle<Instance>(instance_handle);
    const Allocator allocator(callbacks, instance.allocator());
    auto* callback =
        allocator.New<DebugReportCallback>(VK_SYSTEM_ALLOCATION_SCOPE_OBJECT, 0, instance, *info);
    if (!callback) {
        return FailOutOfHostMemory(instance);
    }
    instance.messengers().Add(&callback->messenger());
    *handle = ToHandle(callback);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyDebugReportCallbackEXT(VkInstance instance_handle,
                                VkDebugReportCallbackEXT handle,
                                const VkAllocationCallbacks* callbacks) {
    auto& instance = *FromHandle<Instance>(instance_handle);
    auto* callback = FromHandle<DebugReportCallback>(handle);
    if (!callback) {
        return;
    }
    instance.messengers().Remove(&callback->messenger());
    Allocator(callbacks, instance.allocator()).Delete(callback);
}

FORNAX_ENTRY_POINT(void)
vkDebugReportMessageEXT(VkInstance instance,
                        VkDebugReportFlagsEXT flags,
                        VkDebugReportObjectTypeEXT object_type,
                        uint64_t object,
                        size_t,
                        int32_t code,
                        const char* layer_prefix,
                        const char* message) {
    const VkDebugUtilsObjectNameInfoEXT about{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .objectType = object_type <= VK_DEBUG_REPORT_OBJECT_TYPE_COMMAND_POOL_EXT
                          ? static_cast<VkObjectType>(object_type)
                          : VK_OBJECT_TYPE_UNKNOWN,
        .objectHandle = object,
    };
    const VkDebugUtilsMessengerCallbackDataEXT data{
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CALLBACK_DATA_EXT,
        .pMessageIdName = layer_prefix,
        .messageIdNumber = code,
        .pMessage = message,
        .objectCount = 1,
        .pObjects = &about,
    };
    for (const Kind& kind : kKinds) {
        if (flags & kind.report) {
            const bool slow = kind.report == VK_DEBUG_REPORT_PERFORMANCE_WARNING_BIT_EXT;
            FromHandle<Instance>(instance)->messengers().Send(
                kind.severity,
                slow ? VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT
                     : VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT,
                data);
            return;
        }
    }
}

}  // namespace fornax::driver
