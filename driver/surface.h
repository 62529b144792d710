// Surface: a headless one, to which nothing can be presented. It belongs to an instance.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/object.h"

namespace fornax::driver {

class Surface : public Object {
  public:
    using Handle = VkSurfaceKHR;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_SURFACE_KHR;

    explicit Surface(Instance& instance) : Object(instance, kObjectType) {}
};

}  // namespace fornax::driver
