// Image view and buffer view: ready-made descriptors, which updates of descriptor sets copy.
#pragma once

#include <optional>

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
    // A sliced view shows only its slices.
    const hal::ImageDescriptor& storage_descriptor() const { return storage_descriptor_; }

  private:
    hal::SampledImageDescriptor descriptor_;
    hal::ImageDescriptor storage_descriptor_;
};

// A descriptor of no image: no texel is inside of it, and a sampler's border is 0 as well
// ("nullDescriptor": loads return zero values).
constexpr hal::SampledImageDescriptor NullImageDescriptor() {
    uint32_t zeros = 0;
    for (uint32_t i = 0; i < 4; ++i) {
        zeros |= static_cast<uint32_t>(hal::Swizzle::kZero) << i * hal::kSwizzleBits;
    }
    return {.image = {.memory = {}, .format = {}, .swizzle = zeros}};
}

// A descriptor of `bytes` bytes at an address; none if the format lacks what texel buffers need.
std::optional<hal::ImageDescriptor> MakeTexelBufferDescriptor(VkFormat format,
                                                              uint64_t address,
                                                              uint64_t bytes);

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
