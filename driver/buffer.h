// Buffer: a range of a device memory object.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "hal/kernel_abi.h"

namespace fornax::driver {

class DeviceMemory;

class Buffer : public DeviceObject {
  public:
    using Handle = VkBuffer;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_BUFFER;

    explicit Buffer(Device& device) : DeviceObject(device, kObjectType) {}
    ~Buffer();

    VkResult Init(const VkBufferCreateInfo& info);

    void Bind(const DeviceMemory& memory, VkDeviceSize offset_bytes);

    VkDeviceSize size_bytes() const { return size_bytes_; }

    // The device address of byte 0. Valid once memory is bound.
    uint64_t address() const { return address_; }

    // VK_WHOLE_SIZE resolved to what follows the offset.
    VkDeviceSize Range(VkDeviceSize offset_bytes, VkDeviceSize range) const {
        return range == VK_WHOLE_SIZE ? size_bytes_ - offset_bytes : range;
    }

  private:
    VkDeviceSize size_bytes_ = 0;
    uint64_t address_ = 0;
};

// A descriptor of a buffer's range; a null buffer gives the null descriptor.
inline hal::BufferDescriptor MakeBufferDescriptor(const VkDescriptorBufferInfo& info) {
    const auto* buffer = FromHandle<Buffer>(info.buffer);
    if (!buffer) {
        return {};
    }
    return {buffer->address() + info.offset, buffer->Range(info.offset, info.range)};
}

}  // namespace fornax::driver
