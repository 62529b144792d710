// Physical device: what the NPU is and can do, as Vulkan describes it. One an instance.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include <vulkan/vulkan_core.h>

#include "base/per_process.h"
#include "base/result.h"
#include "driver/object.h"
#include "hal/device.h"
#include "npu/description/description.h"

namespace fornax::kernel {
class KernelCompiler;
}

namespace fornax::driver {

// The one memory type: the NPU shares the host's memory.
inline constexpr VkMemoryPropertyFlags kMemoryTypeFlags =
    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
    VK_MEMORY_PROPERTY_HOST_COHERENT_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

// A subgroup is one vector of any number of registers; pipelines may ask for another size.
inline constexpr uint32_t kSubgroupSize = 32;
inline constexpr uint32_t kMinSubgroupSize = 8;
inline constexpr uint32_t kMaxSubgroupSize = 64;
inline constexpr VkSubgroupFeatureFlags kSubgroupOperations =
    VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
    VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
    VK_SUBGROUP_FEATURE_SHUFFLE_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT |
    VK_SUBGROUP_FEATURE_CLUSTERED_BIT | VK_SUBGROUP_FEATURE_QUAD_BIT |
    VK_SUBGROUP_FEATURE_PARTITIONED_BIT_NV | VK_SUBGROUP_FEATURE_ROTATE_BIT |
    VK_SUBGROUP_FEATURE_ROTATE_CLUSTERED_BIT;

class PhysicalDevice : public Object {
  public:
    using Handle = VkPhysicalDevice;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_PHYSICAL_DEVICE;

    explicit PhysicalDevice(Instance& instance);
    ~PhysicalDevice();

    // Asks the HAL's device what it is.
    VkResult Init();

    const hal::DeviceCapabilities& capabilities() const { return capabilities_; }
    // FORNAX_NPU: times, limits and products of matrices are this machine's.
    const std::optional<npu::Description>& machine() const { return machine_; }
    bool is_modelled() const { return machine_.has_value(); }
    const VkPhysicalDeviceProperties& properties() const { return properties_; }
    hal::HeapState heap() const { return hal_->heap(); }

    // The compiler that all devices share. LLVM is started when it is first asked for.
    Result<kernel::KernelCompiler*> compiler();

    // Bytes that all devices of the process have allocated: "heapUsage: an estimate of how much
    // memory the process is currently using" (VK_EXT_memory_budget). Instances come and go, so the
    // count is nobody's.
    static std::atomic<uint64_t>& allocated_bytes();

  private:
    std::shared_ptr<hal::Device> hal_;  // runs nothing; asked for capabilities
    hal::DeviceCapabilities capabilities_;
    std::optional<npu::Description> machine_;
    VkPhysicalDeviceProperties properties_ = {};
    ProcessMutex compiler_mutex_;
    std::unique_ptr<kernel::KernelCompiler> compiler_;
};

// Implemented in physical_device_limits.cpp.
VkPhysicalDeviceLimits MakeLimits(const hal::DeviceCapabilities& capabilities);
// Implemented in physical_device_properties.cpp.
VkResult MakeProperties(const Object& origin,
                        const hal::DeviceCapabilities& capabilities,
                        VkPhysicalDeviceProperties& properties);

}  // namespace fornax::driver
