// Places and rows ("Copies" in the specification).
#include "driver/image_copy.h"

namespace fornax::driver {
namespace {

uint32_t BytesOf(const Image& image, VkImageAspectFlags aspect) {
    return image.format().PlaneTexel(image.format().PlaneOf(aspect)).bytes;
}

}  // namespace

ImagePlace PlaceOf(const Image& image,
                   const VkImageSubresourceLayers& layers,
                   VkImageAspectFlags aspect,
                   const VkOffset3D& offset) {
    const uint32_t plane = image.format().PlaneOf(aspect);
    const ImageLayout::Level& level = image.level(layers.mipLevel, plane);
    // Depth slices of a 3D image are to copies what layers of others are.
    const uint32_t slice =
        image.type() == VK_IMAGE_TYPE_3D ? static_cast<uint32_t>(offset.z) : layers.baseArrayLayer;
    const uint32_t block = image.format().block_log2();
    const uint64_t x_bytes =
        static_cast<uint64_t>(offset.x >> block) * image.sample_count() * BytesOf(image, aspect);
    return {image.Address(plane, layers.mipLevel, slice) +
                static_cast<uint64_t>(offset.y >> block) * level.row_pitch + x_bytes,
            level.row_pitch, image.SlicePitch(plane, layers.mipLevel)};
}

ImagePlace PlaceOf(uint64_t address,
                   const Image& image,
                   VkImageAspectFlags aspect,
                   uint32_t row_texels,
                   uint32_t rows,
                   const VkExtent3D& extent) {
    const uint64_t row_pitch =
        uint64_t{image.format().Blocks(row_texels ? row_texels : extent.width)} *
        BytesOf(image, aspect);
    return {address, row_pitch, row_pitch * image.format().Blocks(rows ? rows : extent.height)};
}

uint32_t SliceCount(const Image& image,
                    const VkImageSubresourceLayers& layers,
                    const VkExtent3D& extent) {
    return image.type() == VK_IMAGE_TYPE_3D ? extent.depth : image.LayersFrom(layers);
}

hal::CopyRowsPayload RowsOf(const Image& image,
                            VkImageAspectFlags aspect,
                            const ImagePlace& source,
                            const ImagePlace& destination,
                            const VkExtent3D& extent,
                            uint32_t slices) {
    return {.source = source.address,
            .destination = destination.address,
            .source_slice_pitch = source.slice_pitch,
            .destination_slice_pitch = destination.slice_pitch,
            .source_row_pitch = static_cast<uint32_t>(source.row_pitch),
            .destination_row_pitch = static_cast<uint32_t>(destination.row_pitch),
            .row_bytes =
                image.format().Blocks(extent.width) * image.sample_count() * BytesOf(image, aspect),
            .rows = image.format().Blocks(extent.height),
            .slices = slices};
}

}  // namespace fornax::driver
