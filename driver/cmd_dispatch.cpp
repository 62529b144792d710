// Binding and dispatching.
#include <optional>

#include "driver/buffer.h"
#include "driver/command_buffer.h"
#include "driver/command_pool.h"
#include "driver/compute_pipeline.h"
#include "driver/descriptor_set.h"
#include "driver/descriptor_update_template.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/pipeline_layout.h"

namespace fornax::driver {
namespace {

// Pushed descriptors lie in memory of the host's, where a write beyond their end would damage what
// the process has there. `end_bytes` is where the write ends, if there is such a binding.
bool CheckPushedEnd(CommandBuffer& commands,
                    const PipelineLayout::Set& set,
                    std::optional<uint64_t> end_bytes) {
    // VUID-VkWriteDescriptorSet-dstBinding-00315, VUID-VkWriteDescriptorSet-descriptorType-00319,
    // VUID-VkDescriptorUpdateTemplateEntry-dstBinding-00354
    if (!end_bytes) {
        commands.Error(Fail(commands, VK_ERROR_VALIDATION_FAILED_EXT,
                            "Descriptors were pushed to a binding that the set's layout does not "
                            "have, or has with another type."));
        return false;
    }
    // VUID-VkWriteDescriptorSet-dstArrayElement-00321
    if (*end_bytes > set.size_bytes) {
        commands.Error(Fail(commands, VK_ERROR_VALIDATION_FAILED_EXT,
                            "Descriptors were pushed up to byte {} of a set that has {} bytes.",
                            *end_bytes, set.size_bytes));
        return false;
    }
    return true;
}

}  // namespace

FORNAX_ENTRY_POINT(void)
vkCmdBindPipeline(VkCommandBuffer command_buffer, VkPipelineBindPoint, VkPipeline pipeline) {
    const auto& bound = *FromHandle<ComputePipeline>(pipeline);
    FromHandle<CommandBuffer>(command_buffer)->BindKernel(&bound.kernel(), bound.debug_name());
}

FORNAX_ENTRY_POINT(void)
vkCmdBindDescriptorSets2(VkCommandBuffer command_buffer, const VkBindDescriptorSetsInfo* info) {
    if (!(info->stageFlags & VK_SHADER_STAGE_COMPUTE_BIT)) {
        return;
    }
    const auto& layout = *FromHandle<PipelineLayout>(info->layout);
    const uint32_t* dynamic_offsets = info->pDynamicOffsets;
    for (uint32_t i = 0; i < info->descriptorSetCount; ++i) {
        // Null sets are allowed with maintenance6 and take no dynamic offsets; nothing may use
        // them.
        if (info->pDescriptorSets[i] == VK_NULL_HANDLE) {
            continue;
        }
        // "dynamic offsets ... are taken in order by set number, then binding number".
        const uint32_t set = info->firstSet + i;
        const uint32_t count = layout.sets()[set].dynamic_offset_count;
        FromHandle<CommandBuffer>(command_buffer)
            ->BindDescriptorSet(set, *FromHandle<DescriptorSet>(info->pDescriptorSets[i]),
                                {dynamic_offsets, count});
        dynamic_offsets += count;
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdBindDescriptorSets(VkCommandBuffer command_buffer,
                        VkPipelineBindPoint,
                        VkPipelineLayout layout,
                        uint32_t first_set,
                        uint32_t set_count,
                        const VkDescriptorSet* sets,
                        uint32_t dynamic_offset_count,
                        const uint32_t* dynamic_offsets) {
    const VkBindDescriptorSetsInfo info{
        .sType = VK_STRUCTURE_TYPE_BIND_DESCRIPTOR_SETS_INFO,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .layout = layout,
        .firstSet = first_set,
        .descriptorSetCount = set_count,
        .pDescriptorSets = sets,
        .dynamicOffsetCount = dynamic_offset_count,
        .pDynamicOffsets = dynamic_offsets,
    };
    vkCmdBindDescriptorSets2(command_buffer, &info);
}

FORNAX_ENTRY_POINT(void)
vkCmdPushConstants2(VkCommandBuffer command_buffer, const VkPushConstantsInfo* info) {
    FromHandle<CommandBuffer>(command_buffer)
        ->PushConstants(info->offset, {static_cast<const std::byte*>(info->pValues), info->size},
                        FromHandle<PipelineLayout>(info->layout)->push_constant_bytes());
}

FORNAX_ENTRY_POINT(void)
vkCmdPushConstants(VkCommandBuffer command_buffer,
                   VkPipelineLayout layout,
                   VkShaderStageFlags stages,
                   uint32_t offset,
                   uint32_t size,
                   const void* values) {
    const VkPushConstantsInfo info{
        .sType = VK_STRUCTURE_TYPE_PUSH_CONSTANTS_INFO,
        .layout = layout,
        .stageFlags = stages,
        .offset = offset,
        .size = size,
        .pValues = values,
    };
    vkCmdPushConstants2(command_buffer, &info);
}

FORNAX_ENTRY_POINT(void)
vkCmdPushDescriptorSet2(VkCommandBuffer command_buffer, const VkPushDescriptorSetInfo* info) {
    if (!(info->stageFlags & VK_SHADER_STAGE_COMPUTE_BIT)) {
        return;
    }
    auto& commands = *FromHandle<CommandBuffer>(command_buffer);
    const auto& layout = *FromHandle<PipelineLayout>(info->layout);
    const PipelineLayout::Set& set = layout.sets()[info->set];
    const DescriptorStorage storage{set.bindings, commands.PushDescriptors(layout, info->set)};
    for (uint32_t i = 0; i < info->descriptorWriteCount; ++i) {
        const VkWriteDescriptorSet& write = info->pDescriptorWrites[i];
        const auto end = EndOfWrite(set.bindings, write.dstBinding, write.descriptorType,
                                    write.dstArrayElement, write.descriptorCount);
        if (!CheckPushedEnd(commands, set, end)) {
            return;
        }
        WriteDescriptors(storage, write);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdPushDescriptorSet(VkCommandBuffer command_buffer,
                       VkPipelineBindPoint,
                       VkPipelineLayout layout,
                       uint32_t set,
                       uint32_t write_count,
                       const VkWriteDescriptorSet* writes) {
    const VkPushDescriptorSetInfo info{
        .sType = VK_STRUCTURE_TYPE_PUSH_DESCRIPTOR_SET_INFO,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .layout = layout,
        .set = set,
        .descriptorWriteCount = write_count,
        .pDescriptorWrites = writes,
    };
    vkCmdPushDescriptorSet2(command_buffer, &info);
}

FORNAX_ENTRY_POINT(void)
vkCmdPushDescriptorSetWithTemplate2(VkCommandBuffer command_buffer,
                                    const VkPushDescriptorSetWithTemplateInfo* info) {
    auto& commands = *FromHandle<CommandBuffer>(command_buffer);
    const auto& layout = *FromHandle<PipelineLayout>(info->layout);
    const auto& update = *FromHandle<DescriptorUpdateTemplate>(info->descriptorUpdateTemplate);
    if (CheckPushedEnd(commands, layout.sets()[info->set], update.end_bytes())) {
        update.Apply(commands.PushDescriptors(layout, info->set), info->pData);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdPushDescriptorSetWithTemplate(VkCommandBuffer command_buffer,
                                   VkDescriptorUpdateTemplate update_template,
                                   VkPipelineLayout layout,
                                   uint32_t set,
                                   const void* data) {
    const VkPushDescriptorSetWithTemplateInfo info{
        .sType = VK_STRUCTURE_TYPE_PUSH_DESCRIPTOR_SET_WITH_TEMPLATE_INFO,
        .descriptorUpdateTemplate = update_template,
        .layout = layout,
        .set = set,
        .pData = data,
    };
    vkCmdPushDescriptorSetWithTemplate2(command_buffer, &info);
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
    if (command_buffer.PrepareDispatch()) {
        command_buffer.builder().Dispatch({count_x, count_y, count_z}, {base_x, base_y, base_z});
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdDispatch(VkCommandBuffer command_buffer, uint32_t x, uint32_t y, uint32_t z) {
    vkCmdDispatchBase(command_buffer, 0, 0, 0, x, y, z);
}

FORNAX_ENTRY_POINT(void)
vkCmdDispatchIndirect(VkCommandBuffer handle, VkBuffer buffer, VkDeviceSize offset) {
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    if (command_buffer.PrepareDispatch()) {
        command_buffer.builder().DispatchIndirect(FromHandle<Buffer>(buffer)->address() + offset);
    }
}

}  // namespace fornax::driver
