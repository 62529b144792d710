// What the physical device tells about its queue families.
#include "driver/queue_family.h"

#include "driver/chain.h"
#include "driver/compat.h"
#include "driver/entry_point.h"
#include "driver/physical_device.h"

namespace fornax::driver {
namespace {

VkQueueFlags ShownFlags(uint32_t family) {
    const VkQueueFlags flags = kQueueFamilies[family].flags;
    const bool with_graphics = GetCompatModes().graphics && (flags & VK_QUEUE_COMPUTE_BIT);
    return with_graphics ? flags | VK_QUEUE_GRAPHICS_BIT : flags;
}

}  // namespace

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceQueueFamilyProperties2(VkPhysicalDevice physical_device,
                                          uint32_t* count,
                                          VkQueueFamilyProperties2* families) {
    const auto& capabilities = FromHandle<PhysicalDevice>(physical_device)->capabilities();
    const auto write = [&](VkQueueFamilyProperties2& out, uint32_t i) {
        out.queueFamilyProperties = {
            .queueFlags = ShownFlags(i),
            .queueCount = kQueueFamilies[i].queue_count,
            .timestampValidBits = capabilities.timestamp_valid_bits,
            .minImageTransferGranularity = {1, 1, 1},
        };
        // Nothing needs to be handed from one family to another (maintenance9).
        if (auto* ownership = FindInChain<VkQueueFamilyOwnershipTransferPropertiesKHR>(
                out.pNext, VK_STRUCTURE_TYPE_QUEUE_FAMILY_OWNERSHIP_TRANSFER_PROPERTIES_KHR)) {
            ownership->optimalImageTransferToQueueFamilies = ~0u;
        }
        // Copies of any box are alike (maintenance11).
        if (auto* granularity = FindInChain<
                VkQueueFamilyOptimalImageTransferGranularityPropertiesKHR>(
                out.pNext,
                VK_STRUCTURE_TYPE_QUEUE_FAMILY_OPTIMAL_IMAGE_TRANSFER_GRANULARITY_PROPERTIES_KHR)) {
            granularity->optimalImageTransferGranularity = {1, 1, 1};
        }
        auto* priorities = FindInChain<VkQueueFamilyGlobalPriorityProperties>(
            out.pNext, VK_STRUCTURE_TYPE_QUEUE_FAMILY_GLOBAL_PRIORITY_PROPERTIES);
        if (priorities) {
            priorities->priorityCount = 1;
            priorities->priorities[0] = kGlobalPriority;
        }
    };
    WriteArray(static_cast<uint32_t>(kQueueFamilies.size()), count, families, write);
}

FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice physical_device,
                                         uint32_t* count,
                                         VkQueueFamilyProperties* families) {
    std::array<VkQueueFamilyProperties2, kQueueFamilies.size()> all;
    all.fill({.sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_PROPERTIES_2});
    uint32_t total = static_cast<uint32_t>(all.size());
    vkGetPhysicalDeviceQueueFamilyProperties2(physical_device, &total, all.data());
    WriteArray(total, count, families, [&](VkQueueFamilyProperties& out, uint32_t i) {
        out = all[i].queueFamilyProperties;
    });
}

}  // namespace fornax::driver
