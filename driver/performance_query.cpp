// Performance counters (VK_KHR_performance_query): which there are, and the lock that profilers
// hold. The queries themselves are in query_pool.cpp.
#include "driver/performance_query.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/hash.h"
#include "driver/entry_point.h"
#include "driver/modelled_counters.h"
#include "driver/physical_device.h"

namespace fornax::driver {

namespace {

void Copy(std::string_view text, char (&destination)[VK_MAX_DESCRIPTION_SIZE]) {
    text.copy(destination, VK_MAX_DESCRIPTION_SIZE - 1);
    destination[text.size()] = '\0';
}

void Print(const hal::Device& device) {
    std::fputs(FormatCounters(device.counters()).c_str(), stderr);
}

// The devices that are to report. Many programs never destroy theirs, and some do when the process
// has begun to end: this is never destroyed itself.
struct Reports {
    std::mutex mutex;
    std::array<const hal::Device*, 16> devices = {};  // more do not report
};
static_assert(std::is_trivially_destructible_v<Reports>);
Reports g_reports;

void ReportAll() {
    std::lock_guard lock(g_reports.mutex);
    for (const hal::Device* device : std::exchange(g_reports.devices, {})) {
        if (device) {
            Print(*device);
        }
    }
}

}  // namespace

std::string FormatCounters(const hal::Counters& counters) {
    std::string text;
    for (const hal::CounterInfo& info : hal::kCounterInfos) {
        if (const uint64_t value = counters.of(info.id); value != 0) {
            text += fmt::format("fornax: {:<26} {:>20}\n", info.name, value);
        }
    }
    return text;
}

void BeginCounterReport(const hal::Device& device) {
    if (!EnvironmentFlag("FORNAX_COUNTERS")) {
        return;
    }
    static const bool at_exit = std::atexit(ReportAll) == 0;
    std::lock_guard lock(g_reports.mutex);
    const auto place = std::ranges::find(g_reports.devices, nullptr);
    if (at_exit && place != g_reports.devices.end()) {
        *place = &device;
    }
}

void EndCounterReport(const hal::Device& device) {
    std::lock_guard lock(g_reports.mutex);
    const auto place = std::ranges::find(g_reports.devices, &device);
    if (place == g_reports.devices.end()) {
        return;
    }
    *place = nullptr;
    Print(device);
}

namespace {

// The device's counters, and behind them those of the described machine.
void Describe(uint32_t index,
              VkPerformanceCounterKHR* counter,
              VkPerformanceCounterDescriptionKHR* description) {
    const bool is_modelled = index >= hal::kCounterIds;
    const hal::CounterInfo& own = hal::kCounterInfos[is_modelled ? 0 : index];
    const ModelledCounterInfo info =
        is_modelled ? kModelledCounterInfos[index - hal::kCounterIds]
                    : ModelledCounterInfo{own.name, own.category, own.description,
                                          own.unit == hal::CounterInfo::Unit::kBytes
                                              ? VK_PERFORMANCE_COUNTER_UNIT_BYTES_KHR
                                              : VK_PERFORMANCE_COUNTER_UNIT_GENERIC_KHR};
    if (counter) {
        counter->unit = info.unit;
        counter->scope = VK_PERFORMANCE_COUNTER_SCOPE_COMMAND_KHR;
        counter->storage = VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR;
        const Hash128 id = Hasher().Append("performance counter").Append(info.name).Finish();
        std::memcpy(counter->uuid, &id, VK_UUID_SIZE);
    }
    if (description) {
        description->flags = 0;
        Copy(info.name, description->name);
        Copy(info.category, description->category);
        Copy(info.description, description->description);
    }
}

}  // namespace

uint32_t CounterCount(const PhysicalDevice& device) {
    return hal::kCounterIds + (device.is_modelled() ? kModelledCounters : 0);
}

// The counters of every queue family are the same: all of the device's. A query may begin and end
// anywhere in a command buffer, and sees what its queue does in between.
FORNAX_ENTRY_POINT(VkResult)
vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR(
    VkPhysicalDevice physical_device,
    uint32_t,
    uint32_t* count,
    VkPerformanceCounterKHR* counters,
    VkPerformanceCounterDescriptionKHR* descriptions) {
    const uint32_t all = CounterCount(*FromHandle<PhysicalDevice>(physical_device));
    if (!counters && !descriptions) {
        *count = all;
        return VK_SUCCESS;
    }
    *count = std::min(*count, all);
    for (uint32_t i = 0; i < *count; ++i) {
        Describe(i, counters ? &counters[i] : nullptr, descriptions ? &descriptions[i] : nullptr);
    }
    return *count < all ? VK_INCOMPLETE : VK_SUCCESS;
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
