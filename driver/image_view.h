// Image view and buffer view: ready-made descriptors, which updates of descriptor sets copy.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "hal/image_abi.h"

namespace fornax::driver {

class ImageView : public DeviceObject {
  public:
    using Handle = VkImageView;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_IMAGE_VIEW;

    explicit ImageView(Device& device) : DeviceObject(device, kObjectType) {}

    VkResult Init(const VkImageViewCreateInfo& info);

    const hal::SampledImageDescriptor& descriptor() const { return descriptor_; }

  private:
    hal::SampledImageDescriptor descriptor_;
};

class BufferView : public DeviceObject {
  public:
    using Handle = VkBufferView;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_BUFFER_VIEW;

    explicit BufferView(Device& device) : DeviceObject(device, kObjectType) {}

    VkResult Init(const VkBufferViewCreateInfo& info);

    const hal::ImageDescriptor& descriptor() const { return descriptor_; }

  private:
    hal::ImageDescriptor descriptor_;
};

}  // namespace fornax::driver
