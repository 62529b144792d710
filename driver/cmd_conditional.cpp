// Conditional rendering (VK_EXT_conditional_rendering): dispatches that a word in memory lets run
// or not. The word is read when the command that begins executes.
#include "driver/buffer.h"
#include "driver/command_buffer.h"
#include "driver/entry_point.h"

namespace fornax::driver {
namespace {

void BeginCondition(VkCommandBuffer command_buffer,
                    uint64_t address,
                    VkConditionalRenderingFlagsEXT flags) {
    FromHandle<CommandBuffer>(command_buffer)
        ->builder()
        .BeginCondition(address, flags & VK_CONDITIONAL_RENDERING_INVERTED_BIT_EXT);
}

}  // namespace

FORNAX_ENTRY_POINT(void)
vkCmdBeginConditionalRenderingEXT(VkCommandBuffer command_buffer,
                                  const VkConditionalRenderingBeginInfoEXT* info) {
    BeginCondition(command_buffer, FromHandle<Buffer>(info->buffer)->address() + info->offset,
                   info->flags);
}

FORNAX_ENTRY_POINT(void)
vkCmdBeginConditionalRendering2EXT(VkCommandBuffer command_buffer,
                                   const VkConditionalRenderingBeginInfo2EXT* info) {
    BeginCondition(command_buffer, info->addressRange.address, info->flags);
}

FORNAX_ENTRY_POINT(void) vkCmdEndConditionalRenderingEXT(VkCommandBuffer command_buffer) {
    FromHandle<CommandBuffer>(command_buffer)->builder().EndCondition();
}

}  // namespace fornax::driver
