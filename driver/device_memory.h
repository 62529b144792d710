// Device memory: an allocation of the HAL, which the host sees all the time.
#pragma once

#include <memory>

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "hal/memory.h"

namespace fornax::driver {

class DeviceMemory : public DeviceObject {
  public:
    using Handle = VkDeviceMemory;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DEVICE_MEMORY;

    explicit DeviceMemory(Device& device) : DeviceObject(device, kObjectType) {}
    ~DeviceMemory();

    VkResult Init(const VkMemoryAllocateInfo& info);

    const hal::Memory& hal() const { return *memory_; }

  private:
    bool counted_ = false;  // in the device's number of allocations
    std::shared_ptr<hal::Memory> memory_;
};

// What vkGet*MemoryRequirements2 say of a resource: its only memory type, no need of an allocation
// of its own. The size is rounded up to the alignment, a power of two.
void FillMemoryRequirements(VkDeviceSize size_bytes,
                            VkDeviceSize alignment,
                            VkMemoryRequirements2& requirements);

}  // namespace fornax::driver
