// VK_EXT_debug_utils: messengers, messages and object names. Labels of command buffers are recorded
// with the other commands.
#pragma once

#include <shared_mutex>

#include <vulkan/vulkan_core.h>

#include "driver/allocator.h"
#include "driver/object.h"

namespace fornax::driver {

// A messenger, made by vkCreateDebugUtilsMessengerEXT.
class DebugMessenger : public Object {
  public:
    using Handle = VkDebugUtilsMessengerEXT;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DEBUG_UTILS_MESSENGER_EXT;

    DebugMessenger(Instance& instance, const VkDebugUtilsMessengerCreateInfoEXT& info)
        : Object(instance, kObjectType), info_(info) {}

  private:
    friend class DebugMessengers;

    VkDebugUtilsMessengerCreateInfoEXT info_;
    DebugMessenger* next_ = nullptr;
};

// All messengers of an instance. Thread-safe.
class DebugMessengers {
  public:
    // Copies the messengers and report callbacks chained to VkInstanceCreateInfo. They hear what
    // happens inside vkCreateInstance and vkDestroyInstance. False when there is no memory.
    bool CopyInstanceMessengers(const Allocator& allocator, const void* chain);
    // Between the two calls they are silent.
    void EnableInstanceMessengers(bool enabled) { instance_messengers_enabled_ = enabled; }

    void Add(DebugMessenger* messenger);
    void Remove(DebugMessenger* messenger);

    // Calls every messenger that wants the message; returns whether there was one.
    bool Send(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
              VkDebugUtilsMessageTypeFlagsEXT types,
              const VkDebugUtilsMessengerCallbackDataEXT& data);

  private:
    std::shared_mutex mutex_;
    DebugMessenger* first_ = nullptr;
    HostArray<VkDebugUtilsMessengerCreateInfoEXT> instance_messengers_;
    HostArray<VkDebugReportCallbackCreateInfoEXT> instance_reports_;
    bool instance_messengers_enabled_ = true;
};

// Access to the name that an object carries.
class DebugNames {
  public:
    // Copies `name`; null or empty takes the name away. False when there is no memory.
    static bool Set(Object& object, const char* name);
};

}  // namespace fornax::driver
