// Copies, fills and updates of buffers.
#include "driver/buffer.h"
#include "driver/command_buffer.h"
#include "driver/entry_point.h"

namespace fornax::driver {

FORNAX_ENTRY_POINT(void)
vkCmdCopyBuffer2(VkCommandBuffer command_buffer, const VkCopyBufferInfo2* info) {
    auto& builder = FromHandle<CommandBuffer>(command_buffer)->builder();
    const uint64_t source = FromHandle<Buffer>(info->srcBuffer)->address();
    const uint64_t destination = FromHandle<Buffer>(info->dstBuffer)->address();
    for (uint32_t i = 0; i < info->regionCount; ++i) {
        const VkBufferCopy2& region = info->pRegions[i];
        builder.Copy(source + region.srcOffset, destination + region.dstOffset, region.size);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyBuffer(VkCommandBuffer command_buffer,
                VkBuffer source,
                VkBuffer destination,
                uint32_t count,
                const VkBufferCopy* regions) {
    auto& builder = FromHandle<CommandBuffer>(command_buffer)->builder();
    const uint64_t from = FromHandle<Buffer>(source)->address();
    const uint64_t to = FromHandle<Buffer>(destination)->address();
    for (uint32_t i = 0; i < count; ++i) {
        builder.Copy(from + regions[i].srcOffset, to + regions[i].dstOffset, regions[i].size);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdFillBuffer(VkCommandBuffer command_buffer,
                VkBuffer buffer_handle,
                VkDeviceSize offset,
                VkDeviceSize size,
                uint32_t pattern) {
    const auto& buffer = *FromHandle<Buffer>(buffer_handle);
    // "If VK_WHOLE_SIZE is used and the remaining size of the buffer is not a multiple of 4, then
    // the nearest smaller multiple is used."
    const VkDeviceSize bytes = buffer.Range(offset, size) & ~VkDeviceSize{3};
    if (bytes != 0) {
        FromHandle<CommandBuffer>(command_buffer)
            ->builder()
            .Fill(buffer.address() + offset, bytes, pattern);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdUpdateBuffer(VkCommandBuffer command_buffer,
                  VkBuffer buffer,
                  VkDeviceSize offset,
                  VkDeviceSize size,
                  const void* data) {
    FromHandle<CommandBuffer>(command_buffer)
        ->builder()
        .Update(FromHandle<Buffer>(buffer)->address() + offset,
                {static_cast<const std::byte*>(data), static_cast<size_t>(size)});
}

}  // namespace fornax::driver
