// VK_EXT_debug_utils, but for command buffer labels.
#include "driver/debug_utils.h"

#include <cstring>
#include <mutex>

#include "driver/chain.h"
#include "driver/debug_report.h"
#include "driver/entry_point.h"
#include "driver/instance.h"
#include "driver/report.h"

namespace fornax::driver {
namespace {

bool SendTo(const VkDebugUtilsMessengerCreateInfoEXT& messenger,
            VkDebugUtilsMessageSeverityFlagBitsEXT severity,
            VkDebugUtilsMessageTypeFlagsEXT types,
            const VkDebugUtilsMessengerCallbackDataEXT& data) {
    if (!(messenger.messageSeverity & severity) || !(messenger.messageType & types)) {
        return false;
    }
    // What a messenger returns only matters to layers.
    messenger.pfnUserCallback(severity, types, &data, messenger.pUserData);
    return true;
}

}  // namespace

bool DebugMessengers::CopyInstanceMessengers(const Allocator& allocator, const void* chain) {
    using Messenger = VkDebugUtilsMessengerCreateInfoEXT;
    using Report = VkDebugReportCallbackCreateInfoEXT;
    HostArray<Messenger> messengers;
    HostArray<Report> reports;
    constexpr auto kScope = VK_SYSTEM_ALLOCATION_SCOPE_INSTANCE;
    if (!CopyAllInChain(allocator, chain, VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                        kScope, messengers) ||
        !CopyAllInChain(allocator, chain, VK_STRUCTURE_TYPE_DEBUG_REPORT_CALLBACK_CREATE_INFO_EXT,
                        kScope, reports)) {
        return false;
    }
    instance_messengers_ = std::move(messengers);
    instance_reports_ = std::move(reports);
    return true;
}

void DebugMessengers::Add(DebugMessenger* messenger) {
    std::unique_lock lock(mutex_);
    messenger->next_ = first_;
    first_ = messenger;
}

void DebugMessengers::Remove(DebugMessenger* messenger) {
    std::unique_lock lock(mutex_);
    DebugMessenger** link = &first_;
    while (*link != messenger) {
        link = &(*link)->next_;
    }
    *link = messenger->next_;
}

bool DebugMessengers::Send(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                           VkDebugUtilsMessageTypeFlagsEXT types,
                           const VkDebugUtilsMessengerCallbackDataEXT& data) {
    // Callbacks must not call Vulkan, so they cannot come back here for the lock.
    std::shared_lock lock(mutex_);
    bool taken = false;
    for (DebugMessenger* messenger = first_; messenger; messenger = messenger->next_) {
        taken |= SendTo(messenger->info_, severity, types, data);
    }
    if (instance_messengers_enabled_) {
        for (const auto& info : instance_messengers_) {
            taken |= SendTo(info, severity, types, data);
        }
        for (auto& report : instance_reports_) {
            taken |= SendTo(MessengerOf(report), severity, types, data);
        }
    }
    return taken;
}

bool DebugNames::Set(Object& object, const char* name) {
    const Allocator& allocator = object.instance().allocator();
    char* copy = nullptr;
    if (name && *name) {
        const size_t size = std::strlen(name) + 1;
        copy = static_cast<char*>(allocator.Allocate(size, 1, VK_SYSTEM_ALLOCATION_SCOPE_OBJECT));
        if (!copy) {
            return false;
        }
        std::memcpy(copy, name, size);
    }
    allocator.Free(object.debug_name_);
    object.debug_name_ = copy;
    return true;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateDebugUtilsMessengerEXT(VkInstance instance_handle,
                               const VkDebugUtilsMessengerCreateInfoEXT* info,
                               const VkAllocationCallbacks* callbacks,
                               VkDebugUtilsMessengerEXT* messenger_handle) {
    auto& instance = *FromHandle<Instance>(instance_handle);
    const Allocator allocator(callbacks, instance.allocator());
    auto* messenger =
        allocator.New<DebugMessenger>(VK_SYSTEM_ALLOCATION_SCOPE_OBJECT, 0, instance, *info);
    if (!messenger) {
        return FailOutOfHostMemory(instance);
    }
    instance.messengers().Add(messenger);
    *messenger_handle = ToHandle(messenger);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyDebugUtilsMessengerEXT(VkInstance instance_handle,
                                VkDebugUtilsMessengerEXT messenger_handle,
                                const VkAllocationCallbacks* callbacks) {
    auto& instance = *FromHandle<Instance>(instance_handle);
    auto* messenger = FromHandle<DebugMessenger>(messenger_handle);
    if (!messenger) {
        return;
    }
    instance.messengers().Remove(messenger);
    Allocator(callbacks, instance.allocator()).Delete(messenger);
}

FORNAX_ENTRY_POINT(void)
vkSubmitDebugUtilsMessageEXT(VkInstance instance,
                             VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                             VkDebugUtilsMessageTypeFlagsEXT types,
                             const VkDebugUtilsMessengerCallbackDataEXT* data) {
    FromHandle<Instance>(instance)->messengers().Send(severity, types, *data);
}

FORNAX_ENTRY_POINT(VkResult)
vkSetDebugUtilsObjectNameEXT(VkDevice, const VkDebugUtilsObjectNameInfoEXT* info) {
    // The loader hands on surfaces of its own, and null for those of a window system.
    if (info->objectType == VK_OBJECT_TYPE_SURFACE_KHR) {
        return VK_SUCCESS;
    }
    Object& object = *Object::FromBits(info->objectHandle);
    return DebugNames::Set(object, info->pObjectName) ? VK_SUCCESS : FailOutOfHostMemory(object);
}

// Tags are data for tools that capture; nothing here reads them.
FORNAX_ENTRY_POINT(VkResult)
vkSetDebugUtilsObjectTagEXT(VkDevice, const VkDebugUtilsObjectTagInfoEXT*) {
    return VK_SUCCESS;
}

}  // namespace fornax::driver
