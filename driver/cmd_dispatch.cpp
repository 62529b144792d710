// Binding and dispatching.
#include "driver/buffer.h"
#include "driver/command_buffer.h"
#include "driver/compute_pipeline.h"
#include "driver/descriptor_set.h"
#include "driver/descriptor_update_template.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/pipeline_layout.h"

namespace fornax::driver {

FORNAX_ENTRY_POINT(void)
vkCmdBindPipeline(VkCommandBuffer command_buffer, VkPipelineBindPoint, VkPipeline pipeline) {
    FromHandle<CommandBuffer>(command_buffer)->BindPipeline(*FromHandle<ComputePipeline>(pipeline));
}

FORNAX_ENTRY_POINT(void)
vkCmdBindDescriptorSets(VkCommandBuffer command_buffer,
                        VkPipelineBindPoint,
                        VkPipelineLayout layout_handle,
                        uint32_t first_set,
                        uint32_t set_count,
                        const VkDescriptorSet* sets,
                        uint32_t,
                        const uint32_t* dynamic_offsets) {
    const auto& layout = *FromHandle<PipelineLayout>(layout_handle);
    for (uint32_t i = 0; i < set_count; ++i) {
        // "dynamic offsets ... are taken in order by set number, then binding number".
        const uint32_t count = layout.sets()[first_set + i].dynamic_offset_count;
        FromHandle<CommandBuffer>(command_buffer)
            ->BindDescriptorSet(first_set + i, *FromHandle<DescriptorSet>(sets[i]),
                                {dynamic_offsets, count});
        dynamic_offsets += count;
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdPushConstants(VkCommandBuffer command_buffer,
                   VkPipelineLayout,
                   VkShaderStageFlags,
                   uint32_t offset,
                   uint32_t size,
                   const void* values) {
    FromHandle<CommandBuffer>(command_buffer)
        ->PushConstants(offset, {static_cast<const std::byte*>(values), size});
}

FORNAX_ENTRY_POINT(void)
vkCmdPushDescriptorSet(VkCommandBuffer command_buffer,
                       VkPipelineBindPoint,
                       VkPipelineLayout layout_handle,
                       uint32_t set,
                       uint32_t write_count,
                       const VkWriteDescriptorSet* writes) {
    const auto& layout = *FromHandle<PipelineLayout>(layout_handle);
    const DescriptorStorage storage{
        layout.sets()[set].bindings,
        FromHandle<CommandBuffer>(command_buffer)->PushDescriptors(layout, set)};
    for (uint32_t i = 0; i < write_count; ++i)
        WriteDescriptors(storage, writes[i]);
}

FORNAX_ENTRY_POINT(void)
vkCmdPushDescriptorSetWithTemplate(VkCommandBuffer command_buffer,
                                   VkDescriptorUpdateTemplate update_template,
                                   VkPipelineLayout layout_handle,
                                   uint32_t set,
                                   const void* data) {
    const auto& layout = *FromHandle<PipelineLayout>(layout_handle);
    FromHandle<DescriptorUpdateTemplate>(update_template)
        ->Apply(FromHandle<CommandBuffer>(command_buffer)->PushDescriptors(layout, set), data);
}

FORNAX_ENTRY_POINT(void)
vkCmdDispatchBase(VkCommandBuffer handle,
                  uint32_t base_x,
                  uint32_t base_y,
                  uint32_t base_z,
                  uint32_t count_x,
                  uint32_t count_y,
                  uint32_t count_z) {
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    if (command_buffer.PrepareDispatch())
        command_buffer.builder().Dispatch({count_x, count_y, count_z}, {base_x, base_y, base_z});
}

FORNAX_ENTRY_POINT(void)
vkCmdDispatch(VkCommandBuffer command_buffer, uint32_t x, uint32_t y, uint32_t z) {
    vkCmdDispatchBase(command_buffer, 0, 0, 0, x, y, z);
}

FORNAX_ENTRY_POINT(void)
vkCmdDispatchIndirect(VkCommandBuffer handle, VkBuffer buffer, VkDeviceSize offset) {
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    if (command_buffer.PrepareDispatch())
        command_buffer.builder().DispatchIndirect(FromHandle<Buffer>(buffer)->address() + offset);
}

}  // namespace fornax::driver
