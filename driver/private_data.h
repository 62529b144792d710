// VK_EXT_private_data: 64-bit values that layers and applications attach to objects.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/object.h"

namespace fornax::driver {

class PrivateDataSlot : public DeviceObject {
  public:
    using Handle = VkPrivateDataSlot;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_PRIVATE_DATA_SLOT;

    explicit PrivateDataSlot(Device& device);

    // False when there is no memory. Thread-safe, as Get.
    bool Set(DeviceObject& object, uint64_t value);
    // 0 for an object that was given none.
    uint64_t Get(const DeviceObject& object) const;

  private:
    // Never used twice, so that a new slot does not find the values of a destroyed one.
    uint64_t id_;
};

}  // namespace fornax::driver
