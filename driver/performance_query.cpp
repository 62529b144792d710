// Performance counters (VK_KHR_performance_query): which there are, and the lock that profilers
// hold. The queries themselves are in query_pool.cpp.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/hash.h"
#include "driver/entry_point.h"
#include "hal/counters.h"

namespace fornax::driver {

namespace {

void Copy(std::string_view text, char (&destination)[VK_MAX_DESCRIPTION_SIZE]) {
    text.copy(destination, VK_MAX_DESCRIPTION_SIZE - 1);
    destination[text.size()] = '\0';
}

}  // namespace

// The counters of every queue family are the same: all of the device's. A query may begin and end
// anywhere in a command buffer, and sees what its queue does in between.
FORNAX_ENTRY_POINT(VkResult)
vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR(
    VkPhysicalDevice,
    uint32_t,
    uint32_t* count,
    VkPerformanceCounterKHR* counters,
    VkPerformanceCounterDescriptionKHR* descriptions) {
    if (!counters && !descriptions) {
        *count = hal::kCounterIds;
        return VK_SUCCESS;
    }
    *count = std::min(*count, hal::kCounterIds);
    for (uint32_t i = 0; i < *count; ++i) {
        const hal::CounterInfo& info = hal::kCounterInfos[i];
        if (counters) {
            counters[i].unit = info.bytes ? VK_PERFORMANCE_COUNTER_UNIT_BYTES_KHR
                                          : VK_PERFORMANCE_COUNTER_UNIT_GENERIC_KHR;
            counters[i].scope = VK_PERFORMANCE_COUNTER_SCOPE_COMMAND_KHR;
            counters[i].storage = VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR;
            const Hash128 id = Hasher().Append("performance counter").Append(info.name).Finish();
            std::memcpy(counters[i].uuid, &id, VK_UUID_SIZE);
        }
        if (descriptions) {
            descriptions[i].flags = 0;
            Copy(info.name, descriptions[i].name);
            Copy(info.category, descriptions[i].category);
            Copy(info.description, descriptions[i].description);
        }
    }
    return *count < hal::kCounterIds ? VK_INCOMPLETE : VK_SUCCESS;
}

// All counters always count.
FORNAX_ENTRY_POINT(void)
vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR(VkPhysicalDevice,
                                                        const VkQueryPoolPerformanceCreateInfoKHR*,
                                                        uint32_t* passes) {
    *passes = 1;
}

// "Implementations may allow multiple actors to hold the profiling lock concurrently" ("Profiling
// Lock"): each queue has counters of its own, and reading them disturbs nobody.
FORNAX_ENTRY_POINT(VkResult)
vkAcquireProfilingLockKHR(VkDevice, const VkAcquireProfilingLockInfoKHR*) {
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void) vkReleaseProfilingLockKHR(VkDevice) {}

}  // namespace fornax::driver
