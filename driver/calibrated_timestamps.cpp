// Clocks of the host beside the device's, taken as nearly at once as can be
// (VK_KHR_calibrated_timestamps).
#include <time.h>

#include <algorithm>

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {

namespace {

constexpr VkTimeDomainKHR kDomains[] = {
    VK_TIME_DOMAIN_DEVICE_KHR,
    VK_TIME_DOMAIN_CLOCK_MONOTONIC_KHR,
    VK_TIME_DOMAIN_CLOCK_MONOTONIC_RAW_KHR,
};

uint64_t Nanoseconds(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t Ticks(const Device& device, VkTimeDomainKHR domain) {
    switch (domain) {
        case VK_TIME_DOMAIN_CLOCK_MONOTONIC_KHR:
            return Nanoseconds(CLOCK_MONOTONIC);
        case VK_TIME_DOMAIN_CLOCK_MONOTONIC_RAW_KHR:
            return Nanoseconds(CLOCK_MONOTONIC_RAW);
        default:
            return device.hal().TimestampNow();
    }
}

// "The maximum duration of a tick of any of the domains."
uint64_t LongestTickNs(const Device& device) {
    timespec host = {};
    clock_getres(CLOCK_MONOTONIC, &host);
    return std::max(
        {uint64_t{1}, static_cast<uint64_t>(host.tv_nsec),
         static_cast<uint64_t>(device.physical_device().capabilities().timestamp_period_ns)});
}

}  // namespace

FORNAX_ENTRY_POINT(VkResult)
vkGetPhysicalDeviceCalibrateableTimeDomainsKHR(VkPhysicalDevice,
                                               uint32_t* count,
                                               VkTimeDomainKHR* domains) {
    return WriteArray(static_cast<uint32_t>(std::size(kDomains)), count, domains,
                      [](VkTimeDomainKHR& out, uint32_t i) { out = kDomains[i]; });
}

FORNAX_ENTRY_POINT(VkResult)
vkGetCalibratedTimestampsKHR(VkDevice device_handle,
                             uint32_t count,
                             const VkCalibratedTimestampInfoKHR* infos,
                             uint64_t* timestamps,
                             uint64_t* max_deviation) {
    const auto& device = *FromHandle<Device>(device_handle);
    // What lies between the first and the last reading, and up to a tick of error in each.
    const uint64_t begin_ns = Nanoseconds(CLOCK_MONOTONIC_RAW);
    for (uint32_t i = 0; i < count; ++i) {
        timestamps[i] = Ticks(device, infos[i].timeDomain);
    }
    const uint64_t end_ns = Nanoseconds(CLOCK_MONOTONIC_RAW);
    *max_deviation = end_ns - begin_ns + LongestTickNs(device);
    return VK_SUCCESS;
}

}  // namespace fornax::driver
