// Commands that name memory by its device address (VK_KHR_device_address_commands,
// VK_KHR_copy_memory_indirect) where older ones name a buffer. What flags say of the buffer behind
// an address means nothing to this device.
#include "driver/cmd_image.h"
#include "driver/command_buffer.h"
#include "driver/entry_point.h"
#include "driver/image.h"

namespace fornax::driver {
namespace {

hal::CommandStreamBuilder& BuilderOf(VkCommandBuffer command_buffer) {
    return FromHandle<CommandBuffer>(command_buffer)->builder();
}

void CopyMemoryImages(VkCommandBuffer command_buffer,
                      const VkCopyDeviceMemoryImageInfoKHR* info,
                      bool to_image) {
    for (uint32_t i = 0; info && i < info->regionCount; ++i) {
        const VkDeviceMemoryImageCopyKHR& region = info->pRegions[i];
        CopyMemoryImage(command_buffer, region.addressRange.address, info->image,
                        {.sType = VK_STRUCTURE_TYPE_BUFFER_IMAGE_COPY_2,
                         .bufferRowLength = region.addressRowLength,
                         .bufferImageHeight = region.addressImageHeight,
                         .imageSubresource = region.imageSubresource,
                         .imageOffset = region.imageOffset,
                         .imageExtent = region.imageExtent},
                        to_image);
    }
}

}  // namespace

FORNAX_ENTRY_POINT(void)
vkCmdDispatchIndirect2KHR(VkCommandBuffer handle, const VkDispatchIndirect2InfoKHR* info) {
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    if (command_buffer.PrepareDispatch()) {
        command_buffer.builder().DispatchIndirect(info->addressRange.address);
    }
}

// The infos of copies are optional in vk.xml; without one there is nothing to copy.
FORNAX_ENTRY_POINT(void)
vkCmdCopyMemoryKHR(VkCommandBuffer command_buffer, const VkCopyDeviceMemoryInfoKHR* info) {
    auto& builder = BuilderOf(command_buffer);
    for (uint32_t i = 0; info && i < info->regionCount; ++i) {
        // VUID-VkDeviceMemoryCopyKHR-size-13016: the destination may be larger.
        const VkDeviceMemoryCopyKHR& region = info->pRegions[i];
        builder.Copy(region.srcRange.address, region.dstRange.address, region.srcRange.size);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyMemoryToImageKHR(VkCommandBuffer command_buffer,
                          const VkCopyDeviceMemoryImageInfoKHR* info) {
    CopyMemoryImages(command_buffer, info, true);
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyImageToMemoryKHR(VkCommandBuffer command_buffer,
                          const VkCopyDeviceMemoryImageInfoKHR* info) {
    CopyMemoryImages(command_buffer, info, false);
}

FORNAX_ENTRY_POINT(void)
vkCmdUpdateMemoryKHR(VkCommandBuffer command_buffer,
                     const VkDeviceAddressRangeKHR* destination,
                     VkAddressCommandFlagsKHR,
                     VkDeviceSize size,
                     const void* data) {
    BuilderOf(command_buffer)
        .Update(destination->address,
                {static_cast<const std::byte*>(data), static_cast<size_t>(size)});
}

FORNAX_ENTRY_POINT(void)
vkCmdFillMemoryKHR(VkCommandBuffer command_buffer,
                   const VkDeviceAddressRangeKHR* destination,
                   VkAddressCommandFlagsKHR,
                   uint32_t pattern) {
    BuilderOf(command_buffer).Fill(destination->address, destination->size, pattern);
}

static_assert(sizeof(VkCopyMemoryIndirectCommandKHR) == sizeof(hal::IndirectCopy));
static_assert(offsetof(VkCopyMemoryIndirectCommandKHR, dstAddress) ==
              offsetof(hal::IndirectCopy, destination));
static_assert(offsetof(VkCopyMemoryIndirectCommandKHR, size) ==
              offsetof(hal::IndirectCopy, size_bytes));

FORNAX_ENTRY_POINT(void)
vkCmdCopyMemoryIndirectKHR(VkCommandBuffer command_buffer,
                           const VkCopyMemoryIndirectInfoKHR* info) {
    BuilderOf(command_buffer)
        .CopyIndirect(info->copyAddressRange.address, info->copyCount,
                      info->copyAddressRange.stride);
}

// A command in memory has the rows that the device reads, the subresource, which the device is told
// in the packet, and the box.
using ImageCommand = VkCopyMemoryToImageIndirectCommandKHR;
constexpr uint64_t kRowsAt = offsetof(ImageCommand, srcAddress);
constexpr uint64_t kBoxAt = offsetof(ImageCommand, imageOffset);
static_assert(offsetof(ImageCommand, bufferRowLength) ==
              kRowsAt + offsetof(hal::IndirectRows, row_texels));
static_assert(offsetof(ImageCommand, bufferImageHeight) ==
              kRowsAt + offsetof(hal::IndirectRows, slice_rows));
static_assert(offsetof(ImageCommand, imageExtent) == kBoxAt + offsetof(hal::IndirectBox, width));
static_assert(sizeof(ImageCommand) == kBoxAt + sizeof(hal::IndirectBox));

FORNAX_ENTRY_POINT(void)
vkCmdCopyMemoryToImageIndirectKHR(VkCommandBuffer command_buffer,
                                  const VkCopyMemoryToImageIndirectInfoKHR* info) {
    const auto& image = *FromHandle<Image>(info->dstImage);
    const FormatInfo& format = image.format();
    const VkStridedDeviceAddressRangeKHR& commands = info->copyAddressRange;
    for (uint32_t i = 0; i < info->copyCount; ++i) {
        const uint64_t command = commands.address + i * commands.stride;
        // What the command in memory says of the subresource "must match the value specified" here.
        const VkImageSubresourceLayers& layers = info->pImageSubresources[i];
        const uint32_t plane = format.PlaneOf(layers.aspectMask);
        const ImageLayout::Level& level = image.level(layers.mipLevel, plane);
        // "If the destination image is of type VK_IMAGE_TYPE_3D, the starting slice and number of
        // slices are specified in baseArrayLayer and layerCount": offset.z and depth have no use.
        const uint32_t all_slices =
            image.type() == VK_IMAGE_TYPE_3D ? level.depth : image.layer_count();
        BuilderOf(command_buffer)
            .CopyRowsIndirect({
                .source = command + kRowsAt,
                .box = command + kBoxAt,
                .destination = image.Address(plane, layers.mipLevel, layers.baseArrayLayer),
                .slice_pitch = image.SlicePitch(plane, layers.mipLevel),
                .row_pitch = static_cast<uint32_t>(level.row_pitch),
                .width = level.width,
                .height = level.height,
                .slices = layers.layerCount == VK_REMAINING_ARRAY_LAYERS
                              ? all_slices - layers.baseArrayLayer
                              : layers.layerCount,
                .bytes = format.PlaneTexel(plane).bytes,
                .block_log2 = static_cast<uint8_t>(format.block_log2()),
            });
    }
}

}  // namespace fornax::driver
