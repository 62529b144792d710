// Instances, and the commands that need none.
#include "driver/instance.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/host_clock.h"
#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/extensions.h"
#include "driver/physical_device.h"
#include "driver/report.h"
#include "driver/supported_api.h"

namespace fornax::driver {

Instance::~Instance() {
    // VUID-vkDestroyInstance-instance-00629: there should be none.
    for (Device* device : devices_) {
        device->hal().Shutdown("The instance was destroyed before its device.");
    }
    allocator_.Delete(physical_device_);
    // Names live in this allocator, which must still be there.
    if (debug_name()) {
        DebugNames::Set(*this, nullptr);
    }
}

VkResult Instance::Init(const VkInstanceCreateInfo& info) {
    if (!messengers_.CopyInstanceMessengers(allocator_, info.pNext)) {
        return FailOutOfHostMemory(*this);
    }

    const char* engine = info.pApplicationInfo ? info.pApplicationInfo->pEngineName : nullptr;
    host_clock_ = engine && std::string_view(engine) == kHostClockEngine;
    const uint32_t wanted = info.pApplicationInfo ? info.pApplicationInfo->apiVersion : 0;
    // "Implementations that support Vulkan 1.1 or later must not return
    // VK_ERROR_INCOMPATIBLE_DRIVER for any value of apiVersion", of another variant either.
    if (VK_API_VERSION_VARIANT(wanted) != 0) {
        Warn(*this, fmt::format("The application wants variant {} of Vulkan; Fornax implements "
                                "variant 0.",
                                VK_API_VERSION_VARIANT(wanted)));
    }
    api_.version = wanted == 0 ? VK_API_VERSION_1_0 : std::min(wanted, kApiVersion);
    api_.device = SupportedApi().device;

    if (info.enabledLayerCount > 0) {
        return Fail(*this, VK_ERROR_LAYER_NOT_PRESENT, "Fornax has no layers, but {} was enabled.",
                    info.ppEnabledLayerNames[0]);
    }
    return EnableExtensions(*this, AllInstanceExtensions(), SupportedApi().instance,
                            {info.ppEnabledExtensionNames, info.enabledExtensionCount},
                            api_.instance);
}

void Instance::AddDevice(Device& device) {
    std::lock_guard lock(devices_mutex_);
    devices_.push_back(&device);
}

void Instance::RemoveDevice(Device& device) {
    std::lock_guard lock(devices_mutex_);
    std::erase(devices_, &device);
}

VkResult Instance::GetPhysicalDevice(PhysicalDevice** physical_device) {
    std::lock_guard lock(mutex_);
    if (!physical_device_) {
        Owned created(allocator_, allocator_.New<PhysicalDevice>(
                                      VK_SYSTEM_ALLOCATION_SCOPE_INSTANCE, 0, *this));
        if (!created) {
            return FailOutOfHostMemory(*this);
        }
        FORNAX_RETURN_IF_FAILED(created->Init());
        physical_device_ = created.Release();
    }
    *physical_device = physical_device_;
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateInstance(const VkInstanceCreateInfo* info,
                 const VkAllocationCallbacks* callbacks,
                 VkInstance* instance_handle) {
    const Allocator allocator(callbacks, Allocator());
    Owned instance(allocator,
                   allocator.New<Instance>(VK_SYSTEM_ALLOCATION_SCOPE_INSTANCE, 0, allocator));
    if (!instance) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    FORNAX_RETURN_IF_FAILED(instance->Init(*info));
    instance->messengers().EnableInstanceMessengers(false);
    *instance_handle = ToHandle(instance.Release());
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyInstance(VkInstance instance_handle, const VkAllocationCallbacks* callbacks) {
    auto* instance = FromHandle<Instance>(instance_handle);
    if (!instance) {
        return;
    }
    instance->messengers().EnableInstanceMessengers(true);
    Allocator(callbacks, Allocator()).Delete(instance);
}

FORNAX_ENTRY_POINT(VkResult) vkEnumerateInstanceVersion(uint32_t* version) {
    *version = kApiVersion;
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkEnumerateInstanceLayerProperties(uint32_t* count, VkLayerProperties*) {
    *count = 0;
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkEnumerateInstanceExtensionProperties(const char* layer,
                                       uint32_t* count,
                                       VkExtensionProperties* properties) {
    if (layer) {
        return VK_ERROR_LAYER_NOT_PRESENT;
    }
    return EnumerateExtensions(AllInstanceExtensions(), SupportedApi().instance, count, properties);
}

FORNAX_ENTRY_POINT(VkResult)
vkEnumeratePhysicalDevices(VkInstance instance_handle, uint32_t* count, VkPhysicalDevice* devices) {
    PhysicalDevice* physical_device = nullptr;
    FORNAX_RETURN_IF_FAILED(
        FromHandle<Instance>(instance_handle)->GetPhysicalDevice(&physical_device));
    return WriteArray(1, count, devices,
                      [&](VkPhysicalDevice& out, uint32_t) { out = ToHandle(physical_device); });
}

FORNAX_ENTRY_POINT(VkResult)
vkEnumeratePhysicalDeviceGroups(VkInstance instance_handle,
                                uint32_t* count,
                                VkPhysicalDeviceGroupProperties* groups) {
    PhysicalDevice* physical_device = nullptr;
    FORNAX_RETURN_IF_FAILED(
        FromHandle<Instance>(instance_handle)->GetPhysicalDevice(&physical_device));
    return WriteArray(1, count, groups, [&](VkPhysicalDeviceGroupProperties& out, uint32_t) {
        out.physicalDeviceCount = 1;
        std::ranges::fill(out.physicalDevices, VkPhysicalDevice(VK_NULL_HANDLE));
        out.physicalDevices[0] = ToHandle(physical_device);
        out.subsetAllocation = VK_FALSE;
    });
}

}  // namespace fornax::driver
