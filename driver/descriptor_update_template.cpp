// Creating descriptor update templates and updating sets with them.
#include "driver/descriptor_update_template.h"

#include <algorithm>
#include <cstring>

#include "driver/descriptor_set.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/pipeline_layout.h"

namespace fornax::driver {
namespace {

std::span<const DescriptorBinding> BindingsOf(const VkDescriptorUpdateTemplateCreateInfo& info) {
    // Each of the two types ignores the other's members.
    if (info.templateType == VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_PUSH_DESCRIPTORS) {
        return FromHandle<PipelineLayout>(info.pipelineLayout)->sets()[info.set].bindings;
    }
    return FromHandle<DescriptorSetLayout>(info.descriptorSetLayout)->bindings();
}

}  // namespace

DescriptorUpdateTemplate::DescriptorUpdateTemplate(Device& device,
                                                   const VkDescriptorUpdateTemplateCreateInfo& info)
    : DeviceObject(device, kObjectType), entry_count_(info.descriptorUpdateEntryCount) {
    const auto bindings = BindingsOf(info);
    std::transform(info.pDescriptorUpdateEntries, info.pDescriptorUpdateEntries + entry_count_,
                   TrailingOf<Entry>(this, entry_count_).begin(),
                   [&](const VkDescriptorUpdateTemplateEntry& from) {
                       const auto end = EndOfWrite(bindings, from.dstBinding, from.descriptorType,
                                                   from.dstArrayElement, from.descriptorCount);
                       end_bytes_ = end && end_bytes_ ? std::max(end_bytes_, end) : std::nullopt;
                       const DescriptorBinding* found = BindingOrNull(bindings, from.dstBinding);
                       if (!found) {
                           return Entry{};  // of no descriptors
                       }
                       const DescriptorBinding& binding = *found;
                       // Elements of an inline block are bytes, behind its descriptor.
                       const uint32_t element_bytes =
                           binding.inline_block()
                               ? from.dstArrayElement + uint32_t{sizeof(hal::BufferDescriptor)}
                               : from.dstArrayElement * binding.descriptor_bytes();
                       return Entry{
                           .binding = binding,
                           .type = from.descriptorType,
                           .set_offset_bytes = binding.offset_bytes + element_bytes,
                           .count = from.descriptorCount,
                           .data_offset_bytes = from.offset,
                           .data_stride_bytes = from.stride,
                       };
                   });
}

void DescriptorUpdateTemplate::Apply(std::byte* set_memory, const void* data) const {
    for (const Entry& entry : TrailingOf<const Entry>(this, entry_count_)) {
        std::byte* out = set_memory + entry.set_offset_bytes;
        const auto* in = static_cast<const std::byte*>(data) + entry.data_offset_bytes;
        if (entry.binding.inline_block()) {
            std::memcpy(out, in, entry.count);
            continue;
        }
        for (uint32_t i = 0; i < entry.count; ++i, in += entry.data_stride_bytes) {
            WriteDescriptor(entry.binding, entry.type, in, out);
            out += entry.binding.descriptor_bytes();
        }
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateDescriptorUpdateTemplate(VkDevice device_handle,
                                 const VkDescriptorUpdateTemplateCreateInfo* info,
                                 const VkAllocationCallbacks* callbacks,
                                 VkDescriptorUpdateTemplate* handle) {
    using Template = DescriptorUpdateTemplate;
    auto* created =
        NewObject<Template>(*FromHandle<Device>(device_handle), callbacks,
                            info->descriptorUpdateEntryCount * sizeof(Template::Entry), *info);
    if (!created) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    *handle = ToHandle(created);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyDescriptorUpdateTemplate(VkDevice device,
                                  VkDescriptorUpdateTemplate handle,
                                  const VkAllocationCallbacks* callbacks) {
    DestroyObject<DescriptorUpdateTemplate>(device, callbacks, handle);
}

FORNAX_ENTRY_POINT(void)
vkUpdateDescriptorSetWithTemplate(VkDevice,
                                  VkDescriptorSet set,
                                  VkDescriptorUpdateTemplate handle,
                                  const void* data) {
    FromHandle<DescriptorUpdateTemplate>(handle)->Apply(
        FromHandle<DescriptorSet>(set)->storage().memory, data);
}

}  // namespace fornax::driver
