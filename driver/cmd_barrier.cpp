// Barriers and events.
//
// The device keeps memory coherent and its units finish at a BARRIER, so every dependency, whatever
// its stages and accesses, is one BARRIER packet.
#include "driver/command_buffer.h"
#include "driver/entry_point.h"
#include "driver/event.h"

namespace fornax::driver {

FORNAX_ENTRY_POINT(void)
vkCmdPipelineBarrier2(VkCommandBuffer command_buffer, const VkDependencyInfo*) {
    FromHandle<CommandBuffer>(command_buffer)->builder().Barrier();
}

FORNAX_ENTRY_POINT(void)
vkCmdPipelineBarrier(VkCommandBuffer command_buffer,
                     VkPipelineStageFlags,
                     VkPipelineStageFlags,
                     VkDependencyFlags,
                     uint32_t,
                     const VkMemoryBarrier*,
                     uint32_t,
                     const VkBufferMemoryBarrier*,
                     uint32_t,
                     const VkImageMemoryBarrier*) {
    FromHandle<CommandBuffer>(command_buffer)->builder().Barrier();
}

namespace {

void ChangeEvent(VkCommandBuffer command_buffer, VkEvent event, bool set) {
    auto& builder = FromHandle<CommandBuffer>(command_buffer)->builder();
    const uint64_t cell = FromHandle<Event>(event)->address();
    builder.Barrier();  // the event changes after the commands before it
    if (set) {
        builder.SetEvent(cell);
    } else {
        builder.ResetEvent(cell);
    }
}

void WaitEvents(VkCommandBuffer command_buffer, uint32_t count, const VkEvent* events) {
    auto& builder = FromHandle<CommandBuffer>(command_buffer)->builder();
    for (uint32_t i = 0; i < count; ++i) {
        builder.WaitEvent(FromHandle<Event>(events[i])->address());
    }
    builder.Barrier();
}

}  // namespace

FORNAX_ENTRY_POINT(void)
vkCmdSetEvent(VkCommandBuffer command_buffer, VkEvent event, VkPipelineStageFlags) {
    ChangeEvent(command_buffer, event, true);
}

FORNAX_ENTRY_POINT(void)
vkCmdSetEvent2(VkCommandBuffer command_buffer, VkEvent event, const VkDependencyInfo*) {
    ChangeEvent(command_buffer, event, true);
}

FORNAX_ENTRY_POINT(void)
vkCmdResetEvent(VkCommandBuffer command_buffer, VkEvent event, VkPipelineStageFlags) {
    ChangeEvent(command_buffer, event, false);
}

FORNAX_ENTRY_POINT(void)
vkCmdResetEvent2(VkCommandBuffer command_buffer, VkEvent event, VkPipelineStageFlags2) {
    ChangeEvent(command_buffer, event, false);
}

FORNAX_ENTRY_POINT(void)
vkCmdWaitEvents(VkCommandBuffer command_buffer,
                uint32_t count,
                const VkEvent* events,
                VkPipelineStageFlags,
                VkPipelineStageFlags,
                uint32_t,
                const VkMemoryBarrier*,
                uint32_t,
                const VkBufferMemoryBarrier*,
                uint32_t,
                const VkImageMemoryBarrier*) {
    WaitEvents(command_buffer, count, events);
}

FORNAX_ENTRY_POINT(void)
vkCmdWaitEvents2(VkCommandBuffer command_buffer,
                 uint32_t count,
                 const VkEvent* events,
                 const VkDependencyInfo*) {
    WaitEvents(command_buffer, count, events);
}

}  // namespace fornax::driver
