// A Vulkan device with one queue that can compute.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <volk.h>

#include "base/result.h"
#include "runtime/vulkan/instance.h"

namespace fornax::vulkan {

// What was found and switched on.
struct DeviceFeatures {
    bool int64 = false;
    bool float64 = false;
    bool storage_8bit = false;
    bool storage_16bit = false;
    // Votes and arithmetic in compute shaders, with shaderSubgroupExtendedTypes.
    bool subgroup_arithmetic = false;
    bool signed_zero_inf_nan_preserve = false;  // of f32
    bool cooperative_matrix = false;
    bool matrices_f32 = false;  // of 16 x 16 x 16, with sums in f32, in subgroups
    bool bfloat16 = false;
    bool integer_dot = false;   // shaderIntegerDotProduct
    bool bfloat16_dot = false;  // shaderMixedFloatDotProductBFloat16Acc
    // Whether pipelines can say if they came from a cache.
    bool creation_feedback = false;
    // minImportedHostPointerAlignment of VK_EXT_external_memory_host, or 0 without the extension.
    uint64_t host_import_alignment = 0;
};

// A device of somebody else, for plans that are recorded into its command buffers. Everything stays
// the owner's and must outlive what is made of it.
struct ForeignDevice {
    VkInstance instance = VK_NULL_HANDLE;
    PFN_vkGetInstanceProcAddr functions = nullptr;
    VkPhysicalDevice physical_device = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;  // may be null if nothing is to be submitted
    uint32_t queue_family = 0;
    // That the owner switched on. What is no feature but a property of the device, Wrap() finds
    // out, and the alignment of imports where `host_import` says that the extension is enabled.
    DeviceFeatures features;
    bool host_import = false;
};

// Several devices live side by side in a process: each has its own table of functions. Thread-safe;
// submissions to the queue take turns.
class Device {
  public:
    // Opens a device (Instance::Choose) with the features above as far as it has them; `driver` as
    // of InstanceOptions.
    static Result<std::shared_ptr<Device>> Open(const std::string& choice,
                                                const std::string& driver = "");
    static Result<std::shared_ptr<Device>> Open(std::shared_ptr<const Instance> instance,
                                                VkPhysicalDevice physical_device);
    // With what `info` says and nothing else, for clients with features of their own, of which
    // features() knows none. Submit() uses queue 0 of the first family of `info`.
    static Result<std::shared_ptr<Device>> Open(std::shared_ptr<const Instance> instance,
                                                VkPhysicalDevice physical_device,
                                                const VkDeviceCreateInfo& info);
    static std::shared_ptr<Device> Wrap(const ForeignDevice& foreign);
    ~Device();

    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const Instance& instance() const { return *instance_; }
    VkPhysicalDevice physical_device() const { return physical_; }
    VkDevice handle() const { return device_; }
    VkQueue queue() const { return queue_; }
    const VolkDeviceTable& vk() const { return *table_; }
    uint32_t queue_family() const { return queue_family_; }
    const DeviceFeatures& features() const { return features_; }
    const VkPhysicalDeviceProperties& properties() const { return properties_; }
    const VkPhysicalDeviceLimits& limits() const { return properties_.limits; }
    std::string name() const { return properties_.deviceName; }
    uint32_t subgroup_size() const { return subgroup_size_; }
    uint64_t max_allocation_bytes() const { return max_allocation_bytes_; }
    // 0 when the queue has no timestamps.
    uint32_t timestamp_bits() const { return timestamp_bits_; }

    // A memory type among `allowed_types` (a mask) that the host can map and that needs no
    // flushing; the device's own memory if there is such, since tensors are computed with far more
    // often than copied.
    Result<uint32_t> HostMemoryType(uint32_t allowed_types) const;

    // Submits the command buffer; `fence` is signalled when it is done.
    Status Submit(VkCommandBuffer commands, VkFence fence);

  private:
    Device() = default;
    void Describe();
    Status Create();
    Status CreateWith(const VkDeviceCreateInfo& info);

    std::shared_ptr<const Instance> instance_;
    VkPhysicalDevice physical_ = VK_NULL_HANDLE;
    VkPhysicalDeviceProperties properties_ = {};
    VkPhysicalDeviceMemoryProperties memory_ = {};
    DeviceFeatures features_;
    uint32_t subgroup_size_ = 1;
    uint64_t max_allocation_bytes_ = 0;
    VkDevice device_ = VK_NULL_HANDLE;
    bool owned_ = false;
    std::unique_ptr<VolkDeviceTable> table_;
    uint32_t queue_family_ = 0;
    uint32_t timestamp_bits_ = 0;
    std::mutex queue_mutex_;  // Vulkan 3.6: the queue of a submission is externally synchronised
    VkQueue queue_ = VK_NULL_HANDLE;
};

}  // namespace fornax::vulkan
