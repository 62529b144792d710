// Event: one cell of device memory that host and device set, reset and look at.
#pragma once

#include <memory>

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "hal/memory.h"
#include "hal/query.h"

namespace fornax::driver {

class Event : public DeviceObject {
  public:
    using Handle = VkEvent;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_EVENT;

    explicit Event(Device& device) : DeviceObject(device, kObjectType) {}

    VkResult Init();

    uint64_t address() const { return memory_->address(); }
    hal::EventCell& cell() const {
        return *reinterpret_cast<hal::EventCell*>(memory_->host_pointer());
    }

  private:
    std::shared_ptr<hal::Memory> memory_;
};

}  // namespace fornax::driver
