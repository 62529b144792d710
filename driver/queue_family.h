// Queue families: which there are, and what each may do.
//
// The first is the one for compute, because programs that look for "the compute family" take the
// first that fits. The second takes transfers only, so that programs which upload beside their
// kernels have a queue for it; it is the same command processor behind the HAL.
#pragma once

#include <array>
#include <cstdint>

#include <vulkan/vulkan_core.h>

namespace fornax::driver {

struct QueueFamily {
    VkQueueFlags flags;
    uint32_t queue_count;
};

inline constexpr std::array<QueueFamily, 2> kQueueFamilies = {{
    {VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 4},
    {VK_QUEUE_TRANSFER_BIT, 2},
}};

inline constexpr uint32_t kAllQueues = [] {
    uint32_t count = 0;
    for (const QueueFamily& family : kQueueFamilies) {
        count += family.queue_count;
    }
    return count;
}();

// All queues share the device's workers alike, so there is one system-wide priority.
inline constexpr VkQueueGlobalPriority kGlobalPriority = VK_QUEUE_GLOBAL_PRIORITY_MEDIUM;

}  // namespace fornax::driver
