// The Vulkan device that plans run on: any that the loader offers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <volk.h>

#include "base/result.h"

namespace fornax::runtime {

// "vkQueueSubmit returned VK_ERROR_DEVICE_LOST (-4)." as an Error; the code tells lost devices and
// exhausted memory apart from the rest.
Error VulkanError(const char* function, VkResult result);

// The name of a result, such as VK_ERROR_DEVICE_LOST.
std::string ResultName(VkResult result);

// An instance, a device and one queue that can compute. volk's function pointers are global, so a
// process has one VulkanDevice at a time. Not thread-safe.
class VulkanDevice {
  public:
    // Opens the device that `choice` names: an index into the loader's list, or a part of the
    // device's name. Without a choice, a device of Fornax comes first, then the loader's first. The
    // error of a choice that does not fit lists the devices.
    static Result<std::unique_ptr<VulkanDevice>> Open(const std::string& choice);
    ~VulkanDevice();

    VulkanDevice(const VulkanDevice&) = delete;
    VulkanDevice& operator=(const VulkanDevice&) = delete;

    VkDevice handle() const { return device_; }
    VkQueue queue() const { return queue_; }
    uint32_t queue_family() const { return queue_family_; }
    const VkPhysicalDeviceProperties& properties() const { return properties_; }
    std::string name() const { return properties_.deviceName; }
    // Whether pipelines can say if they came from a cache: Vulkan 1.3 or
    // VK_EXT_pipeline_creation_feedback.
    bool has_creation_feedback() const { return has_creation_feedback_; }
    // 0 when the queue has no timestamps.
    uint32_t timestamp_bits() const { return timestamp_bits_; }

    // A memory type among `allowed_types` (a mask) that the host can map and that needs no
    // flushing; the device's own memory if there is such, since plans are computed with far more
    // often than copied.
    Result<uint32_t> HostMemoryType(uint32_t allowed_types) const;

  private:
    VulkanDevice() = default;
    Status CreateInstance();
    Status Choose(const std::string& choice);
    Status CreateDevice();

    VkInstance instance_ = VK_NULL_HANDLE;
    VkPhysicalDevice physical_ = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties properties_ = {};
    VkPhysicalDeviceMemoryProperties memory_ = {};
    VkDevice device_ = VK_NULL_HANDLE;
    VkQueue queue_ = VK_NULL_HANDLE;
    uint32_t queue_family_ = 0;
    uint32_t timestamp_bits_ = 0;
    bool has_creation_feedback_ = false;
};

}  // namespace fornax::runtime
