// Creating pipeline layouts, and telling the kernel compiler of them.
#include "driver/pipeline_layout.h"

#include <algorithm>
#include <utility>

#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {
namespace {

// A null layout (VK_EXT_graphics_pipeline_library) is no use to compute, and means no bindings.
std::span<const DescriptorBinding> BindingsOf(const DescriptorSetLayout* layout) {
    return layout ? layout->bindings() : std::span<const DescriptorBinding>();
}

std::span<const hal::SamplerDescriptor> SamplersOf(const DescriptorSetLayout* layout) {
    return layout ? layout->immutable_samplers() : std::span<const hal::SamplerDescriptor>();
}

}  // namespace

size_t PipelineLayout::TrailingBytes(const VkPipelineLayoutCreateInfo& info) {
    size_t bytes = info.setLayoutCount * sizeof(Set);
    for (uint32_t i = 0; i < info.setLayoutCount; ++i) {
        const auto* layout = FromHandle<DescriptorSetLayout>(info.pSetLayouts[i]);
        bytes += BindingsOf(layout).size_bytes() + SamplersOf(layout).size_bytes();
    }
    return bytes;
}

PipelineLayout::PipelineLayout(Device& device, const VkPipelineLayoutCreateInfo& info)
    : DeviceObject(device, kObjectType), set_count_(info.setLayoutCount) {
    const auto sets = TrailingOf<Set>(this, set_count_);
    size_t place = sets.size_bytes();
    for (uint32_t i = 0; i < set_count_; ++i) {
        const auto* layout = FromHandle<DescriptorSetLayout>(info.pSetLayouts[i]);
        const auto source = BindingsOf(layout);
        const auto bindings = TrailingOf<DescriptorBinding>(this, source.size(), place);
        std::ranges::copy(source, bindings.begin());
        place += bindings.size_bytes();
        const auto from_samplers = SamplersOf(layout);
        const auto samplers = TrailingOf<hal::SamplerDescriptor>(this, from_samplers.size(), place);
        std::ranges::copy(from_samplers, samplers.begin());
        place += samplers.size_bytes();
        sets[i] = {
            .bindings = bindings,
            .immutable_samplers = samplers,
            .size_bytes = layout ? layout->size_bytes() : 0,
            .first_dynamic_offset = dynamic_offset_count_,
            .dynamic_offset_count = layout ? layout->dynamic_offset_count() : 0,
            .is_push = layout && layout->is_push(),
        };
        dynamic_offset_count_ += sets[i].dynamic_offset_count;
    }
    for (uint32_t i = 0; i < info.pushConstantRangeCount; ++i) {
        const VkPushConstantRange& range = info.pPushConstantRanges[i];
        if (range.stageFlags & VK_SHADER_STAGE_COMPUTE_BIT) {
            push_constant_bytes_ = std::max(push_constant_bytes_, range.offset + range.size);
        }
    }
}

PipelineLayout::PipelineLayout(Device& device, std::shared_ptr<const kernel::ResourceLayout> heap)
    : DeviceObject(device, kObjectType),
      set_count_(0),
      push_constant_bytes_(heap->push_constant_bytes),
      heap_(std::move(heap)) {}

kernel::ResourceLayout PipelineLayout::MakeResourceLayout() const {
    if (heap_) {
        return *heap_;
    }
    kernel::ResourceLayout layout{.push_constant_bytes = push_constant_bytes_};
    layout.sets.resize(set_count_);
    for (uint32_t i = 0; i < set_count_; ++i) {
        const Set& set = sets()[i];
        for (const DescriptorBinding& binding : set.bindings) {
            if (binding.count == 0) {
                continue;
            }
            layout.sets[i].bindings.push_back({
                .binding = binding.binding,
                .kind = *DescriptorKind(binding.type),
                .count = binding.inline_block() ? 1 : binding.count,
                .offset_bytes = binding.offset_bytes,
                .first_dynamic_offset =
                    binding.dynamic() ? set.first_dynamic_offset + binding.first_dynamic_offset
                                      : kernel::BindingLayout::kNotDynamic,
                .variable_count = binding.variable_count && !binding.inline_block(),
                .stride_bytes = binding.is_mutable() ? binding.element_bytes : 0,
                .inline_bytes = binding.inline_block() && binding.in_buffer ? binding.count : 0,
            });
        }
    }
    return layout;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreatePipelineLayout(VkDevice device_handle,
                       const VkPipelineLayoutCreateInfo* info,
                       const VkAllocationCallbacks* callbacks,
                       VkPipelineLayout* handle) {
    auto& device = *FromHandle<Device>(device_handle);
    auto* layout =
        NewObject<PipelineLayout>(device, callbacks, PipelineLayout::TrailingBytes(*info), *info);
    if (!layout) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    *handle = ToHandle(layout);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyPipelineLayout(VkDevice device,
                        VkPipelineLayout layout,
                        const VkAllocationCallbacks* callbacks) {
    DestroyObject<PipelineLayout>(device, callbacks, layout);
}

}  // namespace fornax::driver
