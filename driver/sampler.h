// Sampler: a ready-made descriptor.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "hal/image_abi.h"

namespace fornax::driver {

class Sampler : public DeviceObject {
  public:
    using Handle = VkSampler;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_SAMPLER;

    explicit Sampler(Device& device) : DeviceObject(device, kObjectType) {}

    VkResult Init(const VkSamplerCreateInfo& info);

    const hal::SamplerDescriptor& descriptor() const { return descriptor_; }

  private:
    hal::SamplerDescriptor descriptor_;
};

}  // namespace fornax::driver
