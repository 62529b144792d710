// VK_KHR_surface and VK_EXT_headless_surface on a device that presents to no surface.
//
// "Not all physical devices will include WSI support. Within a physical device, not all queue
// families will support presentation" ("Querying for WSI Support"): surfaces can be made, and
// vkGetPhysicalDeviceSurfaceSupportKHR says VK_FALSE of all of them. The other queries are for
// surfaces that are supported (VUID-vkGetPhysicalDeviceSurfaceCapabilitiesKHR-surface-06211 and its
// neighbours), so they fail. A surface of a window system is the loader's and never looked into.
#include "driver/surface.h"

#include <algorithm>

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/instance.h"
#include "driver/physical_device.h"
#include "driver/report.h"

namespace fornax::driver {
namespace {

VkResult FailUnsupported(const Object& origin, const char* name) {
    return Fail(origin, VK_ERROR_SURFACE_LOST_KHR,
                "{} was called, but Fornax presents to no surface, as "
                "vkGetPhysicalDeviceSurfaceSupportKHR says.",
                name);
}

VkResult FailUnsupported(VkPhysicalDevice physical_device, const char* name) {
    return FailUnsupported(*FromHandle<PhysicalDevice>(physical_device), name);
}

}  // namespace

FORNAX_ENTRY_POINT(VkResult)
vkCreateHeadlessSurfaceEXT(VkInstance instance_handle,
                           const VkHeadlessSurfaceCreateInfoEXT*,
                           const VkAllocationCallbacks* callbacks,
                           VkSurfaceKHR* surface_handle) {
    auto& instance = *FromHandle<Instance>(instance_handle);
    auto* surface = Allocator(callbacks, instance.allocator())
                        .New<Surface>(VK_SYSTEM_ALLOCATION_SCOPE_OBJECT, 0, instance);
    if (!surface) {
        return FailOutOfHostMemory(instance);
    }
    *surface_handle = ToHandle(surface);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroySurfaceKHR(VkInstance instance_handle,
                    VkSurfaceKHR surface,
                    const VkAllocationCallbacks* callbacks) {
    auto& instance = *FromHandle<Instance>(instance_handle);
    Allocator(callbacks, instance.allocator()).Delete(FromHandle<Surface>(surface));
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDeviceSurfaceSupportKHR(VkPhysicalDevice,
                                     uint32_t,
                                     VkSurfaceKHR,
                                     VkBool32* supported) {
    *supported = VK_FALSE;
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDeviceSurfaceCapabilitiesKHR(VkPhysicalDevice physical_device,
                                          VkSurfaceKHR,
                                          VkSurfaceCapabilitiesKHR* capabilities) {
    *capabilities = {};
    return FailUnsupported(physical_device, "vkGetPhysicalDeviceSurfaceCapabilitiesKHR");
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDeviceSurfaceFormatsKHR(VkPhysicalDevice physical_device,
                                     VkSurfaceKHR,
                                     uint32_t* count,
                                     VkSurfaceFormatKHR*) {
    *count = 0;
    return FailUnsupported(physical_device, "vkGetPhysicalDeviceSurfaceFormatsKHR");
}

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDeviceSurfacePresentModesKHR(VkPhysicalDevice physical_device,
                                          VkSurfaceKHR,
                                          uint32_t* count,
                                          VkPresentModeKHR*) {
    *count = 0;
    return FailUnsupported(physical_device, "vkGetPhysicalDeviceSurfacePresentModesKHR");
}

// --- What VK_KHR_device_group brings where there are surfaces
// ------------------------------------------------------------

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDevicePresentRectanglesKHR(VkPhysicalDevice physical_device,
                                        VkSurfaceKHR,
                                        uint32_t* count,
                                        VkRect2D*) {
    *count = 0;
    return FailUnsupported(physical_device, "vkGetPhysicalDevicePresentRectanglesKHR");
}

// "Entries are zero for physical devices without a presentation engine."
FORNAX_ENTRY_POINT(VkResult)
vkGetDeviceGroupPresentCapabilitiesKHR(VkDevice,
                                       VkDeviceGroupPresentCapabilitiesKHR* capabilities) {
    std::ranges::fill(capabilities->presentMask, 0u);
    capabilities->modes = 0;
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkGetDeviceGroupSurfacePresentModesKHR(VkDevice device,
                                       VkSurfaceKHR,
                                       VkDeviceGroupPresentModeFlagsKHR* modes) {
    *modes = 0;
    return FailUnsupported(*FromHandle<Device>(device), "vkGetDeviceGroupSurfacePresentModesKHR");
}

}  // namespace fornax::driver
