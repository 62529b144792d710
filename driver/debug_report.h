// VK_EXT_debug_report, the predecessor of debug utils: a callback is a messenger in other words.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/debug_utils.h"
#include "driver/object.h"

namespace fornax::driver {

// A messenger that hands messages on to the callback of `report`, which must live as long.
VkDebugUtilsMessengerCreateInfoEXT MessengerOf(VkDebugReportCallbackCreateInfoEXT& report);

class DebugReportCallback : public Object {
  public:
    using Handle = VkDebugReportCallbackEXT;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DEBUG_REPORT_CALLBACK_EXT;

    DebugReportCallback(Instance& instance, const VkDebugReportCallbackCreateInfoEXT& info)
        : Object(instance, kObjectType), info_(info), messenger_(instance, MessengerOf(info_)) {}

    DebugMessenger& messenger() { return messenger_; }

  private:
    VkDebugReportCallbackCreateInfoEXT info_;
    DebugMessenger messenger_;
};

}  // namespace fornax::driver
