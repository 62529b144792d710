// Copies of images by the host (VK_EXT_host_image_copy). The host sees all memory, and both tilings
// are rows of texels, so a copy is one of rows; layouts mean nothing.
#include <algorithm>
#include <cstring>

#include "driver/entry_point.h"
#include "driver/image_copy.h"

namespace fornax::driver {
namespace {

// Rows from place to place; their addresses are not the payload's.
void CopyRows(const hal::CopyRowsPayload& rows, const std::byte* source, std::byte* destination) {
    for (uint64_t slice = 0; slice < rows.slices; ++slice) {
        const std::byte* from = source + slice * rows.source_slice_pitch;
        std::byte* to = destination + slice * rows.destination_slice_pitch;
        for (uint32_t row = 0; row < rows.rows; ++row) {
            std::memcpy(to, from, rows.row_bytes);
            from += rows.source_row_pitch;
            to += rows.destination_row_pitch;
        }
    }
}

// The rows of a region between an image and memory of the host. With
// VK_HOST_IMAGE_COPY_MEMCPY_BIT memory holds the subresources' bytes in whatever order the
// implementation likes, for which the one without gaps will do.
template <typename Region>
hal::CopyRowsPayload RowsOfRegion(const Image& image, const Region& region, bool to_image) {
    const VkImageAspectFlags aspect = region.imageSubresource.aspectMask;
    const ImagePlace texels = PlaceOf(image, region.imageSubresource, aspect, region.imageOffset);
    const ImagePlace memory = PlaceOf(0, image, aspect, region.memoryRowLength,
                                      region.memoryImageHeight, region.imageExtent);
    return RowsOf(image, aspect, to_image ? memory : texels, to_image ? texels : memory,
                  region.imageExtent,
                  SliceCount(image, region.imageSubresource, region.imageExtent));
}

}  // namespace

FORNAX_ENTRY_POINT(VkResult)
vkCopyMemoryToImage(VkDevice, const VkCopyMemoryToImageInfo* info) {
    const auto& image = *FromHandle<Image>(info->dstImage);
    for (uint32_t i = 0; i < info->regionCount; ++i) {
        const VkMemoryToImageCopy& region = info->pRegions[i];
        const hal::CopyRowsPayload rows = RowsOfRegion(image, region, true);
        CopyRows(rows, static_cast<const std::byte*>(region.pHostPointer),
                 image.HostPointer(rows.destination));
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkCopyImageToMemory(VkDevice, const VkCopyImageToMemoryInfo* info) {
    const auto& image = *FromHandle<Image>(info->srcImage);
    for (uint32_t i = 0; i < info->regionCount; ++i) {
        const VkImageToMemoryCopy& region = info->pRegions[i];
        const hal::CopyRowsPayload rows = RowsOfRegion(image, region, false);
        CopyRows(rows, image.HostPointer(rows.source),
                 static_cast<std::byte*>(region.pHostPointer));
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkCopyImageToImage(VkDevice, const VkCopyImageToImageInfo* info) {
    const auto& source = *FromHandle<Image>(info->srcImage);
    const auto& destination = *FromHandle<Image>(info->dstImage);
    for (uint32_t i = 0; i < info->regionCount; ++i) {
        ForEachImageCopy(source, destination, info->pRegions[i],
                         [&](const hal::CopyRowsPayload& rows) {
                             CopyRows(rows, source.HostPointer(rows.source),
                                      destination.HostPointer(rows.destination));
                         });
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkTransitionImageLayout(VkDevice, uint32_t, const VkHostImageLayoutTransitionInfo*) {
    return VK_SUCCESS;
}

}  // namespace fornax::driver
