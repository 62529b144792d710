// Device memory: an allocation of the HAL, which the host sees all the time.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/memory_report.h"
#include "driver/object.h"

namespace fornax::driver {

class DeviceMemory : public DeviceObject {
  public:
    using Handle = VkDeviceMemory;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DEVICE_MEMORY;

    explicit DeviceMemory(Device& device) : DeviceObject(device, kObjectType) {}
    ~DeviceMemory();

    VkResult Init(const VkMemoryAllocateInfo& info);

    const hal::Memory& hal() const { return *memory_; }

    // vkMapMemory2 and vkUnmapMemory2.
    VkResult Map(const VkMemoryMapInfo& info, void** data);
    VkResult Unmap(const VkMemoryUnmapInfo& info);

  private:
    VkResult Allocate(const VkMemoryAllocateInfo& info);
    VkResult Import(const VkImportMemoryFdInfoKHR& info, VkDeviceSize size_bytes);
    VkResult Import(const VkImportMemoryHostPointerInfoEXT& info, VkDeviceSize size_bytes);

    bool counted_ = false;        // in the device's number of allocations
    ObjectMemory memory_{*this};  // imported, it is in the budget of somebody else
    // Where VK_EXT_map_memory_placed put it.
    void* placed_ = nullptr;
    VkDeviceSize placed_bytes_ = 0;
};

// What vkGet*MemoryRequirements2 say of a resource: its only memory type, no need of an allocation
// of its own. The size is rounded up to the alignment, a power of two.
void FillMemoryRequirements(VkDeviceSize size_bytes,
                            VkDeviceSize alignment,
                            VkMemoryRequirements2& requirements);

}  // namespace fornax::driver
