// Making descriptors of views.
#include "driver/image_view.h"

#include <algorithm>

#include "driver/buffer.h"
#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/image.h"
#include "driver/limits.h"

namespace fornax::driver {
namespace {

void SetFormat(const hal::TexelFormat& texel, hal::ImageDescriptor& descriptor) {
    descriptor.format = texel;
    for (size_t i = 0; i < 4; ++i) {
        descriptor.scale[i] = hal::ComponentScale(texel, i);
    }
}

// Which of red, green, blue and alpha each component of a texel is.
uint32_t ChannelOrder(uint32_t swizzle) {
    uint32_t order = 0;
    for (uint32_t place = 0; place < 4; ++place) {
        uint32_t channel = place;
        for (uint32_t i = 0; i < 4; ++i) {
            if ((swizzle >> (i * hal::kSwizzleBits) & 15) == place) {
                channel = i;
            }
        }
        order |= channel << (place * hal::kSwizzleBits);
    }
    return order;
}

VkResult FailFormat(const Object& origin, const char* what, VkFormat format) {
    return Fail(origin, VK_ERROR_VALIDATION_FAILED_EXT,
                "{} of format {} was asked for, which has no features that one needs.", what,
                static_cast<int>(format));
}

}  // namespace

VkResult ImageView::Init(const VkImageViewCreateInfo& info) {
    const auto& image = *FromHandle<Image>(info.image);
    const VkImageSubresourceRange& range = info.subresourceRange;
    // VUID-VkImageViewCreateInfo-None-02273.
    const FormatInfo* format = FindFormat(info.format);
    if (!format || !format->image_features || !AreCompatible(image.format(), *format, true)) {
        return FailFormat(device(), "A view", info.format);
    }
    // Shaders see one aspect; a view of both is of the depth for them.
    const uint32_t plane =
        range.aspectMask & VK_IMAGE_ASPECT_DEPTH_BIT ? 0 : image.format().PlaneOf(range.aspectMask);
    const uint32_t base = range.baseMipLevel;
    const uint32_t levels =
        range.levelCount == VK_REMAINING_MIP_LEVELS ? image.level_count() - base : range.levelCount;
    const ImageLayout::Level& level = image.level(base, plane);
    // Slices of a 3D image are the layers of a view of another type
    // (VK_IMAGE_CREATE_2D_ARRAY_COMPATIBLE_BIT).
    const bool is_3d = info.viewType == VK_IMAGE_VIEW_TYPE_3D;
    const uint32_t all_layers =
        image.type() == VK_IMAGE_TYPE_3D ? level.depth : image.layer_count();
    const uint32_t layers = range.layerCount == VK_REMAINING_ARRAY_LAYERS
                                ? all_layers - range.baseArrayLayer
                                : range.layerCount;
    hal::ImageDescriptor& descriptor = descriptor_.image;
    const uint64_t address = image.Address(plane, base, is_3d ? 0 : range.baseArrayLayer);
    descriptor.memory = {address, image.end_address() - address};
    SetFormat(format->PlaneTexel(plane), descriptor);
    descriptor.swizzle = ComposeSwizzle(format->swizzle, info.components) |
                         ChannelOrder(format->swizzle) << hal::kSwizzleOrderShift;
    // Blocks are the texels of a view of another format
    // (VK_IMAGE_CREATE_BLOCK_TEXEL_VIEW_COMPATIBLE_BIT).
    const uint32_t shift = image.format().block_log2() - format->block_log2();
    descriptor.width = (level.width + (1u << shift) - 1) >> shift;
    descriptor.height = (level.height + (1u << shift) - 1) >> shift;
    descriptor.depth = is_3d ? level.depth : layers;
    descriptor.row_pitch = static_cast<uint32_t>(level.row_pitch);
    descriptor.slice_pitch = static_cast<uint32_t>(image.SlicePitch(plane, base));
    descriptor.levels = image.sample_count() > 1 ? image.sample_count() : levels;
    for (uint32_t i = 0; i < levels; ++i) {
        descriptor_.level_offsets[i] =
            static_cast<uint32_t>(image.level(base + i, plane).offset_bytes - level.offset_bytes);
    }
    storage_descriptor_ = descriptor;
    // "imageSlicedViewOf3D: a sliced view in a descriptor of type STORAGE_IMAGE"; others see it
    // all.
    const auto* sliced = FindInChain<VkImageViewSlicedCreateInfoEXT>(
        info.pNext, VK_STRUCTURE_TYPE_IMAGE_VIEW_SLICED_CREATE_INFO_EXT);
    if (sliced && is_3d) {
        const uint64_t first = image.Address(plane, base, sliced->sliceOffset);
        storage_descriptor_.memory = {first, image.end_address() - first};
        storage_descriptor_.depth = sliced->sliceCount == VK_REMAINING_3D_SLICES_EXT
                                        ? level.depth - sliced->sliceOffset
                                        : sliced->sliceCount;
    }
    return VK_SUCCESS;
}

std::optional<hal::ImageDescriptor> MakeTexelBufferDescriptor(VkFormat format_name,
                                                              uint64_t address,
                                                              uint64_t bytes) {
    const FormatInfo* format = FindFormat(format_name);
    constexpr VkFormatFeatureFlags2 kTexels =
        VK_FORMAT_FEATURE_2_UNIFORM_TEXEL_BUFFER_BIT | VK_FORMAT_FEATURE_2_STORAGE_TEXEL_BUFFER_BIT;
    if (!format || !(format->buffer_features & kTexels)) {
        return std::nullopt;
    }
    hal::ImageDescriptor descriptor;
    SetFormat(format->texel, descriptor);
    descriptor.swizzle = format->swizzle;
    descriptor.memory = {address, bytes};
    // "The number of texels is floor(range / texel block size)"; the rest is outside.
    descriptor.width = static_cast<uint32_t>(
        std::min<uint64_t>(bytes / format->texel.bytes, kMaxTexelBufferElements));
    descriptor.height = 1;
    descriptor.depth = 1;
    descriptor.levels = 1;
    return descriptor;
}

VkResult BufferView::Init(const VkBufferViewCreateInfo& info) {
    const auto& buffer = *FromHandle<Buffer>(info.buffer);
    const auto descriptor = MakeTexelBufferDescriptor(info.format, buffer.address() + info.offset,
                                                      buffer.Range(info.offset, info.range));
    if (!descriptor) {
        return FailFormat(device(), "A buffer view", info.format);
    }
    descriptor_ = *descriptor;
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateImageView(VkDevice device,
                  const VkImageViewCreateInfo* info,
                  const VkAllocationCallbacks* callbacks,
                  VkImageView* view) {
    return CreateObject<ImageView>(device, callbacks, view, *info);
}

FORNAX_ENTRY_POINT(void)
vkDestroyImageView(VkDevice device, VkImageView view, const VkAllocationCallbacks* callbacks) {
    DestroyObject<ImageView>(device, callbacks, view);
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateBufferView(VkDevice device,
                   const VkBufferViewCreateInfo* info,
                   const VkAllocationCallbacks* callbacks,
                   VkBufferView* view) {
    return CreateObject<BufferView>(device, callbacks, view, *info);
}

FORNAX_ENTRY_POINT(void)
vkDestroyBufferView(VkDevice device, VkBufferView view, const VkAllocationCallbacks* callbacks) {
    DestroyObject<BufferView>(device, callbacks, view);
}

}  // namespace fornax::driver
