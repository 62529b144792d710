// Image: levels and layers laid out in a range of a device memory object, rows of
// texels in both tilings (hal/image_abi.h).
#pragma once

#include <array>
#include <cstddef>

#include <vulkan/vulkan_core.h>

#include "driver/format.h"
#include "driver/object.h"

namespace fornax::driver {

class DeviceMemory;

// How an image lies in its memory; a function of its creation parameters alone.
struct ImageLayout {
    struct Level {
        uint32_t width;
        uint32_t height;
        uint32_t depth;
        uint64_t offset_bytes;  // in its layer
        uint64_t row_pitch;     // of texels, or of blocks
        uint64_t slice_pitch;   // of depth slices
        uint64_t size_bytes;
    };
    using Plane = std::array<Level, hal::kMaxImageLevels>;
    std::array<Plane, kMaxPlanes> planes;
    uint64_t layer_pitch = 0;
    uint64_t size_bytes = 0;
};
ImageLayout LayOutImage(const VkImageCreateInfo& info, const FormatInfo& format);

class Image : public DeviceObject {
  public:
    using Handle = VkImage;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_IMAGE;

    explicit Image(Device& device) : DeviceObject(device, kObjectType) {}
    ~Image();

    VkResult Init(const VkImageCreateInfo& info);
    void Bind(const DeviceMemory& memory, VkDeviceSize offset_bytes);

    const FormatInfo& format() const { return *format_; }
    VkImageType type() const { return type_; }
    uint32_t level_count() const { return level_count_; }
    uint32_t layer_count() const { return layer_count_; }
    uint32_t sample_count() const { return sample_count_; }
    const ImageLayout& layout() const { return layout_; }
    const ImageLayout::Level& level(uint32_t index, uint32_t plane = 0) const {
        return layout_.planes[plane][index];
    }

    // The device address of the first texel of a plane's level. A 3D image has depth slices where
    // others have layers. Valid once memory is bound.
    uint64_t Address(uint32_t plane, uint32_t level_index, uint32_t slice) const {
        return address_ + level(level_index, plane).offset_bytes +
               slice * SlicePitch(plane, level_index);
    }
    // Bytes from one slice or layer to the next.
    uint64_t SlicePitch(uint32_t plane, uint32_t level_index) const {
        return type_ == VK_IMAGE_TYPE_3D ? level(level_index, plane).slice_pitch
                                         : layout_.layer_pitch;
    }
    uint64_t end_address() const { return address_ + layout_.size_bytes; }
    // Where the host sees what is at a device address.
    std::byte* HostPointer(uint64_t address) const { return host_pointer_ + (address - address_); }

    uint32_t LayersFrom(const VkImageSubresourceLayers& layers) const {
        return layers.layerCount == VK_REMAINING_ARRAY_LAYERS ? layer_count_ - layers.baseArrayLayer
                                                              : layers.layerCount;
    }

  private:
    const FormatInfo* format_ = nullptr;
    VkImageType type_ = VK_IMAGE_TYPE_2D;
    uint32_t level_count_ = 1;
    uint32_t layer_count_ = 1;
    uint32_t sample_count_ = 1;
    ImageLayout layout_ = {};
    uint64_t address_ = 0;
    std::byte* host_pointer_ = nullptr;
};

}  // namespace fornax::driver
