// The life of the parts that all objects share.
#include "driver/object.h"

#include "driver/debug_utils.h"
#include "driver/device.h"
#include "driver/instance.h"

namespace fornax::driver {

Object::~Object() {
    if (debug_name_) {
        DebugNames::Set(*this, nullptr);
    }
    type_ = VK_OBJECT_TYPE_UNKNOWN;  // debug builds notice a handle that is used too late
}

DeviceObject::DeviceObject(Device& device, VkObjectType type)
    : Object(device.instance(), type), device_(&device) {}

}  // namespace fornax::driver
