// Commands that name memory by its device address (VK_KHR_device_address_commands,
// VK_KHR_copy_memory_indirect) where older ones name a buffer. What flags say of the buffer behind
// an address means nothing to this device.
#include "driver/cmd_image.h"
#include "driver/command_buffer.h"
#include "driver/entry_point.h"

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
    if (command_buffer.PrepareDispatch())
        command_buffer.builder().DispatchIndirect(info->addressRange.address);
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

FORNAX_ENTRY_POINT(void)
vkCmdCopyMemoryToImageIndirectKHR(VkCommandBuffer handle,
                                  const VkCopyMemoryToImageIndirectInfoKHR*) {
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    command_buffer.Error(
        Fail(command_buffer, VK_ERROR_FEATURE_NOT_PRESENT,
             "vkCmdCopyMemoryToImageIndirectKHR was recorded; Fornax does not have "
             "indirectMemoryToImageCopy."));
}

}  // namespace fornax::driver
