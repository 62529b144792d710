// Event: one cell of device memory that host and device set, reset and look at.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/memory_report.h"
#include "driver/object.h"
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
    ObjectMemory memory_{*this};
};

}  // namespace fornax::driver
