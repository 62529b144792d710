// Copies between buffers and images, and clears of images, as copies of rows. Layouts of images
// mean nothing to the device.
#include "driver/cmd_image.h"

#include <algorithm>
#include <cstring>

#include "driver/buffer.h"
#include "driver/command_buffer.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/image.h"

namespace fornax::driver {
namespace {

// A block of texels of one level: where it begins, and how far its rows and slices are apart.
struct Block {
    uint64_t address;
    uint64_t row_pitch;
    uint64_t slice_pitch;
};

Block BlockOf(const Image& image,
              const VkImageSubresourceLayers& layers,
              const VkOffset3D& offset) {
    const ImageLayout::Level& level = image.level(layers.mipLevel);
    // Depth slices of a 3D image are to copies what layers of others are.
    const uint32_t slice =
        image.type() == VK_IMAGE_TYPE_3D ? static_cast<uint32_t>(offset.z) : layers.baseArrayLayer;
    const uint64_t x_bytes = static_cast<uint64_t>(offset.x) * image.sample_count()
                             << image.format().texel.bytes_log2;
    return {image.Address(layers.mipLevel, slice) +
                static_cast<uint64_t>(offset.y) * level.row_pitch + x_bytes,
            level.row_pitch, image.SlicePitch(layers.mipLevel)};
}

uint32_t SliceCount(const Image& image,
                    const VkImageSubresourceLayers& layers,
                    const VkExtent3D& extent) {
    if (image.type() == VK_IMAGE_TYPE_3D)
        return extent.depth;
    return layers.layerCount == VK_REMAINING_ARRAY_LAYERS
               ? image.layer_count() - layers.baseArrayLayer
               : layers.layerCount;
}

void CopyBlocks(VkCommandBuffer command_buffer,
                const Image& image,
                const Block& source,
                const Block& destination,
                const VkExtent3D& extent,
                uint32_t slices) {
    FromHandle<CommandBuffer>(command_buffer)
        ->builder()
        .CopyRows(
            {.source = source.address,
             .destination = destination.address,
             .source_slice_pitch = source.slice_pitch,
             .destination_slice_pitch = destination.slice_pitch,
             .source_row_pitch = static_cast<uint32_t>(source.row_pitch),
             .destination_row_pitch = static_cast<uint32_t>(destination.row_pitch),
             .row_bytes = extent.width * image.sample_count() << image.format().texel.bytes_log2,
             .rows = extent.height,
             .slices = slices});
}

// The buffer's side of a region ("Buffer and Image Addressing").
Block BlockOf(uint64_t buffer_address, const Image& image, const VkBufferImageCopy2& region) {
    const uint64_t row_texels =
        region.bufferRowLength ? region.bufferRowLength : region.imageExtent.width;
    const uint64_t rows =
        region.bufferImageHeight ? region.bufferImageHeight : region.imageExtent.height;
    const uint64_t row_pitch = row_texels << image.format().texel.bytes_log2;
    return {buffer_address + region.bufferOffset, row_pitch, row_pitch * rows};
}

VkBufferImageCopy2 Widen(const VkBufferImageCopy& region) {
    return {.sType = VK_STRUCTURE_TYPE_BUFFER_IMAGE_COPY_2,
            .bufferOffset = region.bufferOffset,
            .bufferRowLength = region.bufferRowLength,
            .bufferImageHeight = region.bufferImageHeight,
            .imageSubresource = region.imageSubresource,
            .imageOffset = region.imageOffset,
            .imageExtent = region.imageExtent};
}

void CopyBufferImage(VkCommandBuffer command_buffer,
                     VkBuffer buffer,
                     VkImage image,
                     const VkBufferImageCopy2& region,
                     bool to_image) {
    CopyMemoryImage(command_buffer, FromHandle<Buffer>(buffer)->address(), image, region, to_image);
}

void CopyImage(VkCommandBuffer command_buffer,
               VkImage source_handle,
               VkImage destination_handle,
               const VkImageCopy2& region) {
    const auto& source = *FromHandle<Image>(source_handle);
    const auto& destination = *FromHandle<Image>(destination_handle);
    // Between a 3D image and layers of another the slices agree (maintenance1).
    const Image& counted = source.type() == VK_IMAGE_TYPE_3D ? source : destination;
    const uint32_t slices =
        SliceCount(counted, &counted == &source ? region.srcSubresource : region.dstSubresource,
                   region.extent);
    CopyBlocks(command_buffer, source, BlockOf(source, region.srcSubresource, region.srcOffset),
               BlockOf(destination, region.dstSubresource, region.dstOffset), region.extent,
               slices);
}

}  // namespace

void CopyMemoryImage(VkCommandBuffer command_buffer,
                     uint64_t memory,
                     VkImage image_handle,
                     const VkBufferImageCopy2& region,
                     bool to_image) {
    const auto& image = *FromHandle<Image>(image_handle);
    const Block texels = BlockOf(image, region.imageSubresource, region.imageOffset);
    const Block bytes = BlockOf(memory, image, region);
    CopyBlocks(command_buffer, image, to_image ? bytes : texels, to_image ? texels : bytes,
               region.imageExtent, SliceCount(image, region.imageSubresource, region.imageExtent));
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyBufferToImage2(VkCommandBuffer command_buffer, const VkCopyBufferToImageInfo2* info) {
    for (uint32_t i = 0; i < info->regionCount; ++i)
        CopyBufferImage(command_buffer, info->srcBuffer, info->dstImage, info->pRegions[i], true);
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyBufferToImage(VkCommandBuffer command_buffer,
                       VkBuffer source,
                       VkImage destination,
                       VkImageLayout,
                       uint32_t count,
                       const VkBufferImageCopy* regions) {
    for (uint32_t i = 0; i < count; ++i)
        CopyBufferImage(command_buffer, source, destination, Widen(regions[i]), true);
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyImageToBuffer2(VkCommandBuffer command_buffer, const VkCopyImageToBufferInfo2* info) {
    for (uint32_t i = 0; i < info->regionCount; ++i)
        CopyBufferImage(command_buffer, info->dstBuffer, info->srcImage, info->pRegions[i], false);
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyImageToBuffer(VkCommandBuffer command_buffer,
                       VkImage source,
                       VkImageLayout,
                       VkBuffer destination,
                       uint32_t count,
                       const VkBufferImageCopy* regions) {
    for (uint32_t i = 0; i < count; ++i)
        CopyBufferImage(command_buffer, destination, source, Widen(regions[i]), false);
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyImage2(VkCommandBuffer command_buffer, const VkCopyImageInfo2* info) {
    for (uint32_t i = 0; i < info->regionCount; ++i)
        CopyImage(command_buffer, info->srcImage, info->dstImage, info->pRegions[i]);
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyImage(VkCommandBuffer command_buffer,
               VkImage source,
               VkImageLayout,
               VkImage destination,
               VkImageLayout,
               uint32_t count,
               const VkImageCopy* regions) {
    for (uint32_t i = 0; i < count; ++i) {
        CopyImage(command_buffer, source, destination,
                  {.sType = VK_STRUCTURE_TYPE_IMAGE_COPY_2,
                   .srcSubresource = regions[i].srcSubresource,
                   .srcOffset = regions[i].srcOffset,
                   .dstSubresource = regions[i].dstSubresource,
                   .dstOffset = regions[i].dstOffset,
                   .extent = regions[i].extent});
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdClearColorImage(VkCommandBuffer handle,
                     VkImage image_handle,
                     VkImageLayout,
                     const VkClearColorValue* color,
                     uint32_t range_count,
                     const VkImageSubresourceRange* ranges) {
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    const auto& image = *FromHandle<Image>(image_handle);
    const auto texel = PackColor(image.format(), *color);
    const uint32_t texel_bytes = image.format().texel_bytes();
    // One row of the widest level, which all rows repeat.
    const size_t row_bytes = size_t{image.level(0).width} * image.sample_count() * texel_bytes;
    HostArray<std::byte> row(command_buffer.device().allocator(), row_bytes);
    if (!row.Has(row_bytes)) {
        command_buffer.Error(FailOutOfHostMemory(command_buffer));
        return;
    }
    for (size_t at = 0; at < row_bytes; at += texel_bytes)
        std::memcpy(row.data() + at, texel.data(), texel_bytes);
    const uint64_t source = command_buffer.builder().StoreSideData(row.data(), row_bytes);
    for (uint32_t i = 0; i < range_count; ++i) {
        const VkImageSubresourceRange& range = ranges[i];
        const uint32_t level_end = range.levelCount == VK_REMAINING_MIP_LEVELS
                                       ? image.level_count()
                                       : range.baseMipLevel + range.levelCount;
        for (uint32_t index = range.baseMipLevel; index < level_end; ++index) {
            const ImageLayout::Level& level = image.level(index);
            const VkImageSubresourceLayers layers{.mipLevel = index,
                                                  .baseArrayLayer = range.baseArrayLayer,
                                                  .layerCount = range.layerCount};
            const VkExtent3D extent{level.width, level.height, level.depth};
            CopyBlocks(handle, image, {.address = source, .row_pitch = 0, .slice_pitch = 0},
                       BlockOf(image, layers, {}), extent, SliceCount(image, layers, extent));
        }
    }
}

}  // namespace fornax::driver
