// Parts of images as rows of bytes: what copies by the device (cmd_image.cpp) and by the host
// (host_image_copy.cpp) have in common.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/image.h"
#include "hal/command_stream.h"

namespace fornax::driver {

// Where a part begins, and how far its rows and slices are apart.
struct ImagePlace {
    uint64_t address;
    uint64_t row_pitch;
    uint64_t slice_pitch;
};

// The place of one aspect. Offsets are texels; those in compressed images are whole blocks.
ImagePlace PlaceOf(const Image& image,
                   const VkImageSubresourceLayers& layers,
                   VkImageAspectFlags aspect,
                   const VkOffset3D& offset);

// Memory from `address` on that holds texels of an aspect, in rows and slices of so many texels, 0
// for those of the part ("Buffer and Image Addressing").
ImagePlace PlaceOf(uint64_t address,
                   const Image& image,
                   VkImageAspectFlags aspect,
                   uint32_t row_texels,
                   uint32_t rows,
                   const VkExtent3D& extent);

// How many slices or layers a part has.
uint32_t SliceCount(const Image& image,
                    const VkImageSubresourceLayers& layers,
                    const VkExtent3D& extent);

// The copy of a part of `image`, whose texels `extent` counts, from place to place.
hal::CopyRowsPayload RowsOf(const Image& image,
                            VkImageAspectFlags aspect,
                            const ImagePlace& source,
                            const ImagePlace& destination,
                            const VkExtent3D& extent,
                            uint32_t slices);

// Calls `copy(CopyRowsPayload)` for each aspect that a copy between images takes.
template <typename Copy>
void ForEachImageCopy(const Image& source,
                      const Image& destination,
                      const VkImageCopy2& region,
                      Copy&& copy) {
    // Between a 3D image and layers of another the slices agree (maintenance1).
    const bool of_source = source.type() == VK_IMAGE_TYPE_3D;
    const uint32_t slices =
        SliceCount(of_source ? source : destination,
                   of_source ? region.srcSubresource : region.dstSubresource, region.extent);
    for (VkImageAspectFlags left = region.srcSubresource.aspectMask; left != 0; left &= left - 1) {
        const VkImageAspectFlags from = left & -left;
        // Both have the same aspects, or each has one.
        const VkImageAspectFlags mask = region.dstSubresource.aspectMask;
        const VkImageAspectFlags to = mask & from ? from : mask;
        copy(RowsOf(source, from, PlaceOf(source, region.srcSubresource, from, region.srcOffset),
                    PlaceOf(destination, region.dstSubresource, to, region.dstOffset),
                    region.extent, slices));
    }
}

}  // namespace fornax::driver
