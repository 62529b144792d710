// Copies between buffers and images, and clears of images, as copies of rows. Layouts of images
// mean nothing to the device.
#include "driver/cmd_image.h"

#include <array>
#include <cstring>

#include "driver/buffer.h"
#include "driver/chain.h"
#include "driver/command_buffer.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/image_copy.h"

namespace fornax::driver {
namespace {

uint32_t BytesOfTexel(const Image& image, VkImageAspectFlags aspect) {
    return image.format().PlaneTexel(image.format().PlaneOf(aspect)).bytes;
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
               VkImage source,
               VkImage destination,
               const VkImageCopy2& region) {
    ForEachImageCopy(*FromHandle<Image>(source), *FromHandle<Image>(destination), region,
                     [&](const hal::CopyRowsPayload& rows) {
                         FromHandle<CommandBuffer>(command_buffer)->builder().CopyRows(rows);
                     });
}

// Copies texel by texel, where they or what is taken of them do not adjoin: a texel is a row, and a
// row a slice.
void CopyTexels(CommandBuffer& command_buffer,
                ImagePlace from,
                uint32_t source_pitch,
                ImagePlace to,
                uint32_t destination_pitch,
                uint32_t bytes,
                const VkExtent3D& extent,
                uint32_t layers) {
    for (uint32_t layer = 0; layer < layers; ++layer) {
        command_buffer.builder().CopyRows({.source = from.address,
                                           .destination = to.address,
                                           .source_slice_pitch = from.row_pitch,
                                           .destination_slice_pitch = to.row_pitch,
                                           .source_row_pitch = source_pitch,
                                           .destination_row_pitch = destination_pitch,
                                           .row_bytes = bytes,
                                           .rows = extent.width,
                                           .slices = extent.height});
        from.address += from.slice_pitch;
        to.address += to.slice_pitch;
    }
}

// The first of several samples is taken: "resolved in an implementation-dependent manner" allows it
// of floating-point and normalized values, and of integers one sample is asked for.
void Resolve(VkCommandBuffer handle,
             VkImage source_handle,
             VkImage destination_handle,
             const VkImageResolve2& region) {
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    const auto* mode = FindInChain<VkResolveImageModeInfoKHR>(
        region.pNext, VK_STRUCTURE_TYPE_RESOLVE_IMAGE_MODE_INFO_KHR);
    for (VkResolveModeFlagBits wanted : {mode ? mode->resolveMode : VK_RESOLVE_MODE_NONE,
                                         mode ? mode->stencilResolveMode : VK_RESOLVE_MODE_NONE}) {
        if (wanted != VK_RESOLVE_MODE_NONE && wanted != VK_RESOLVE_MODE_SAMPLE_ZERO_BIT) {
            command_buffer.Error(Fail(command_buffer, VK_ERROR_FEATURE_NOT_PRESENT,
                                      "A resolve of mode {:#x} was recorded; Fornax takes the "
                                      "first sample (mode 1).",
                                      static_cast<unsigned>(wanted)));
            return;
        }
    }
    const auto& source = *FromHandle<Image>(source_handle);
    const auto& destination = *FromHandle<Image>(destination_handle);
    const uint32_t layers = SliceCount(source, region.srcSubresource, region.extent);
    for (VkImageAspectFlags left = region.srcSubresource.aspectMask; left != 0; left &= left - 1) {
        const VkImageAspectFlags aspect = left & -left;
        const uint32_t texel_bytes = BytesOfTexel(source, aspect);
        CopyTexels(command_buffer, PlaceOf(source, region.srcSubresource, aspect, region.srcOffset),
                   texel_bytes * source.sample_count(),
                   PlaceOf(destination, region.dstSubresource, aspect, region.dstOffset),
                   texel_bytes, texel_bytes, region.extent, layers);
    }
}

// Texels of levels that all become one.
void Clear(VkCommandBuffer handle,
           const Image& image,
           VkImageAspectFlags aspect,
           const std::array<std::byte, 16>& texel,
           uint32_t range_count,
           const VkImageSubresourceRange* ranges) {
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    const uint32_t texel_bytes = BytesOfTexel(image, aspect);
    // One row of the widest level, which all rows repeat.
    const size_t row_bytes = size_t{image.level(0).width} * image.sample_count() * texel_bytes;
    HostArray<std::byte> row(command_buffer.device().allocator(), row_bytes);
    if (!row.Has(row_bytes)) {
        command_buffer.Error(FailOutOfHostMemory(command_buffer));
        return;
    }
    for (size_t at = 0; at < row_bytes; at += texel_bytes) {
        std::memcpy(row.data() + at, texel.data(), texel_bytes);
    }
    const uint64_t source = command_buffer.builder().StoreSideData(row.data(), row_bytes);
    for (uint32_t i = 0; i < range_count; ++i) {
        const VkImageSubresourceRange& range = ranges[i];
        if (!(range.aspectMask & aspect)) {
            continue;
        }
        const uint32_t level_end = range.levelCount == VK_REMAINING_MIP_LEVELS
                                       ? image.level_count()
                                       : range.baseMipLevel + range.levelCount;
        for (uint32_t index = range.baseMipLevel; index < level_end; ++index) {
            const ImageLayout::Level& level = image.level(index);
            const VkImageSubresourceLayers layers{.mipLevel = index,
                                                  .baseArrayLayer = range.baseArrayLayer,
                                                  .layerCount = range.layerCount};
            const VkExtent3D extent{level.width, level.height, level.depth};
            command_buffer.builder().CopyRows(RowsOf(
                image, aspect, {.address = source, .row_pitch = 0, .slice_pitch = 0},
                PlaceOf(image, layers, aspect, {}), extent, SliceCount(image, layers, extent)));
        }
    }
}

}  // namespace

void CopyMemoryImage(VkCommandBuffer handle,
                     uint64_t memory,
                     VkImage image_handle,
                     const VkBufferImageCopy2& region,
                     bool to_image) {
    const auto& image = *FromHandle<Image>(image_handle);
    const VkImageAspectFlags aspect = region.imageSubresource.aspectMask;
    const ImagePlace texels = PlaceOf(image, region.imageSubresource, aspect, region.imageOffset);
    const ImagePlace bytes =
        PlaceOf(memory + region.bufferOffset, image, aspect, region.bufferRowLength,
                region.bufferImageHeight, region.imageExtent);
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    const uint32_t slices = SliceCount(image, region.imageSubresource, region.imageExtent);
    // "Packed in one 32-bit word per texel, with the D24 value in the LSBs and undefined values in
    // the eight MSBs": these do not become part of the image, so equal depths are equal bytes.
    if (to_image &&
        image.format().PlaneTexel(image.format().PlaneOf(aspect)).layout == hal::TexelLayout::k24) {
        CopyTexels(command_buffer, bytes, 4, texels, 4, 3, region.imageExtent, slices);
        return;
    }
    command_buffer.builder().CopyRows(RowsOf(image, aspect, to_image ? bytes : texels,
                                             to_image ? texels : bytes, region.imageExtent,
                                             slices));
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyBufferToImage2(VkCommandBuffer command_buffer, const VkCopyBufferToImageInfo2* info) {
    for (uint32_t i = 0; i < info->regionCount; ++i) {
        CopyBufferImage(command_buffer, info->srcBuffer, info->dstImage, info->pRegions[i], true);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyBufferToImage(VkCommandBuffer command_buffer,
                       VkBuffer source,
                       VkImage destination,
                       VkImageLayout,
                       uint32_t count,
                       const VkBufferImageCopy* regions) {
    for (uint32_t i = 0; i < count; ++i) {
        CopyBufferImage(command_buffer, source, destination, Widen(regions[i]), true);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyImageToBuffer2(VkCommandBuffer command_buffer, const VkCopyImageToBufferInfo2* info) {
    for (uint32_t i = 0; i < info->regionCount; ++i) {
        CopyBufferImage(command_buffer, info->dstBuffer, info->srcImage, info->pRegions[i], false);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyImageToBuffer(VkCommandBuffer command_buffer,
                       VkImage source,
                       VkImageLayout,
                       VkBuffer destination,
                       uint32_t count,
                       const VkBufferImageCopy* regions) {
    for (uint32_t i = 0; i < count; ++i) {
        CopyBufferImage(command_buffer, destination, source, Widen(regions[i]), false);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyImage2(VkCommandBuffer command_buffer, const VkCopyImageInfo2* info) {
    for (uint32_t i = 0; i < info->regionCount; ++i) {
        CopyImage(command_buffer, info->srcImage, info->dstImage, info->pRegions[i]);
    }
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
vkCmdClearColorImage(VkCommandBuffer command_buffer,
                     VkImage image_handle,
                     VkImageLayout,
                     const VkClearColorValue* color,
                     uint32_t range_count,
                     const VkImageSubresourceRange* ranges) {
    const auto& image = *FromHandle<Image>(image_handle);
    Clear(command_buffer, image, VK_IMAGE_ASPECT_COLOR_BIT, PackColor(image.format(), *color),
          range_count, ranges);
}

// A command of queues for graphics, of which there are none; it costs nothing to have it.
FORNAX_ENTRY_POINT(void)
vkCmdClearDepthStencilImage(VkCommandBuffer command_buffer,
                            VkImage image_handle,
                            VkImageLayout,
                            const VkClearDepthStencilValue* value,
                            uint32_t range_count,
                            const VkImageSubresourceRange* ranges) {
    const auto& image = *FromHandle<Image>(image_handle);
    const FormatInfo& format = image.format();
    for (VkImageAspectFlags aspect : {VK_IMAGE_ASPECT_DEPTH_BIT, VK_IMAGE_ASPECT_STENCIL_BIT}) {
        if (format.aspects & aspect) {
            Clear(command_buffer, image, aspect,
                  PackDepthStencil(format, format.PlaneOf(aspect), *value), range_count, ranges);
        }
    }
}

// Likewise.
FORNAX_ENTRY_POINT(void)
vkCmdResolveImage2(VkCommandBuffer command_buffer, const VkResolveImageInfo2* info) {
    for (uint32_t i = 0; i < info->regionCount; ++i) {
        Resolve(command_buffer, info->srcImage, info->dstImage, info->pRegions[i]);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdResolveImage(VkCommandBuffer command_buffer,
                  VkImage source,
                  VkImageLayout,
                  VkImage destination,
                  VkImageLayout,
                  uint32_t count,
                  const VkImageResolve* regions) {
    for (uint32_t i = 0; i < count; ++i) {
        Resolve(command_buffer, source, destination,
                {.sType = VK_STRUCTURE_TYPE_IMAGE_RESOLVE_2,
                 .srcSubresource = regions[i].srcSubresource,
                 .srcOffset = regions[i].srcOffset,
                 .dstSubresource = regions[i].dstSubresource,
                 .dstOffset = regions[i].dstOffset,
                 .extent = regions[i].extent});
    }
}

}  // namespace fornax::driver
