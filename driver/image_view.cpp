// Making descriptors of views.
#include "driver/image_view.h"

#include <algorithm>

#include "driver/buffer.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/image.h"
#include "driver/limits.h"

namespace fornax::driver {
namespace {

void SetFormat(const FormatInfo& format, hal::ImageDescriptor& descriptor) {
    descriptor.format = format.texel;
    descriptor.swizzle = format.swizzle;
    const auto bits = hal::ComponentBits(format.texel.layout);
    for (size_t i = 0; i < 4; ++i)
        descriptor.scale[i] = hal::NormalizedScale(format.texel.texel_class, bits[i]);
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
    if (!format || format->texel.bytes_log2 != image.format().texel.bytes_log2)
        return FailFormat(device(), "A view", info.format);
    const uint32_t base = range.baseMipLevel;
    const uint32_t levels =
        range.levelCount == VK_REMAINING_MIP_LEVELS ? image.level_count() - base : range.levelCount;
    const ImageLayout::Level& level = image.level(base);
    // Slices of a 3D image are the layers of a view of another type
    // (VK_IMAGE_CREATE_2D_ARRAY_COMPATIBLE_BIT).
    const bool is_3d = info.viewType == VK_IMAGE_VIEW_TYPE_3D;
    const uint32_t all_layers =
        image.type() == VK_IMAGE_TYPE_3D ? level.depth : image.layer_count();
    const uint32_t layers = range.layerCount == VK_REMAINING_ARRAY_LAYERS
                                ? all_layers - range.baseArrayLayer
                                : range.layerCount;
    hal::ImageDescriptor& descriptor = descriptor_.image;
    const uint64_t address = image.Address(base, is_3d ? 0 : range.baseArrayLayer);
    descriptor.memory = {address, image.end_address() - address};
    SetFormat(*format, descriptor);
    descriptor.swizzle = ComposeSwizzle(format->swizzle, info.components);
    descriptor.width = level.width;
    descriptor.height = level.height;
    descriptor.depth = is_3d ? level.depth : layers;
    descriptor.row_pitch = static_cast<uint32_t>(level.row_pitch);
    descriptor.slice_pitch = static_cast<uint32_t>(image.SlicePitch(base));
    descriptor.levels = image.sample_count() > 1 ? image.sample_count() : levels;
    for (uint32_t i = 0; i < levels; ++i) {
        descriptor_.level_offsets[i] =
            static_cast<uint32_t>(image.level(base + i).offset_bytes - level.offset_bytes);
    }
    return VK_SUCCESS;
}

std::optional<hal::ImageDescriptor> MakeTexelBufferDescriptor(VkFormat format_name,
                                                              uint64_t address,
                                                              uint64_t bytes) {
    const FormatInfo* format = FindFormat(format_name);
    if (!format || format->buffer_features == 0)
        return std::nullopt;
    hal::ImageDescriptor descriptor;
    SetFormat(*format, descriptor);
    descriptor.memory = {address, bytes};
    // "The number of texels is floor(range / texel block size)"; the rest is outside.
    descriptor.width = static_cast<uint32_t>(
        std::min<uint64_t>(bytes >> format->texel.bytes_log2, kMaxTexelBufferElements));
    descriptor.height = 1;
    descriptor.depth = 1;
    descriptor.levels = 1;
    return descriptor;
}

VkResult BufferView::Init(const VkBufferViewCreateInfo& info) {
    const auto& buffer = *FromHandle<Buffer>(info.buffer);
    const auto descriptor = MakeTexelBufferDescriptor(info.format, buffer.address() + info.offset,
                                                      buffer.Range(info.offset, info.range));
    if (!descriptor)
        return FailFormat(device(), "A buffer view", info.format);
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
