// Descriptor buffers (VK_EXT_descriptor_buffer): sets that the application keeps in memory of its
// own. They lie as in a descriptor set (driver/descriptor_set_layout.h), so kernels know no
// difference.
#include <cstring>

#include "driver/buffer.h"
#include "driver/command_buffer.h"
#include "driver/descriptor_set.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/image.h"
#include "driver/image_view.h"
#include "driver/pipeline_layout.h"
#include "driver/sampler.h"

namespace fornax::driver {
namespace {

template <typename T>
void Put(const T& descriptor, void* out) {
    std::memcpy(out, &descriptor, sizeof(descriptor));
}

// "If nullDescriptor is enabled", pointers and addresses may be null.
hal::BufferDescriptor BufferOf(const VkDescriptorAddressInfoEXT* info) {
    if (!info || info->address == 0) {
        return {};
    }
    return {info->address, info->range};
}

hal::ImageDescriptor TexelBufferOf(const VkDescriptorAddressInfoEXT* info) {
    if (!info || info->address == 0) {
        return NullImageDescriptor().image;
    }
    return MakeTexelBufferDescriptor(info->format, info->address, info->range)
        .value_or(NullImageDescriptor().image);
}

hal::SampledImageDescriptor ImageOf(const VkDescriptorImageInfo* info) {
    const auto* view = info ? FromHandle<ImageView>(info->imageView) : nullptr;
    return view ? view->descriptor() : NullImageDescriptor();
}

hal::ImageDescriptor StorageImageOf(const VkDescriptorImageInfo* info) {
    const auto* view = info ? FromHandle<ImageView>(info->imageView) : nullptr;
    return view ? view->storage_descriptor() : NullImageDescriptor().image;
}

VkResult FailCapture(VkDevice device) {
    return Fail(*FromHandle<Device>(device), VK_ERROR_FEATURE_NOT_PRESENT,
                "Descriptor data was captured, but Fornax does not have "
                "descriptorBufferCaptureReplay.");
}

}  // namespace

FORNAX_ENTRY_POINT(void)
vkGetDescriptorSetLayoutSizeEXT(VkDevice, VkDescriptorSetLayout layout, VkDeviceSize* size) {
    *size = FromHandle<DescriptorSetLayout>(layout)->size_bytes();
}

FORNAX_ENTRY_POINT(void)
vkGetDescriptorSetLayoutBindingOffsetEXT(VkDevice,
                                         VkDescriptorSetLayout layout,
                                         uint32_t binding,
                                         VkDeviceSize* offset) {
    *offset =
        FindBinding(FromHandle<DescriptorSetLayout>(layout)->bindings(), binding).offset_bytes;
}

FORNAX_ENTRY_POINT(void)
vkGetDescriptorEXT(VkDevice, const VkDescriptorGetInfoEXT* info, size_t, void* out) {
    const VkDescriptorDataEXT& data = info->data;
    switch (info->type) {
        case VK_DESCRIPTOR_TYPE_SAMPLER:
            Put(FromHandle<Sampler>(*data.pSampler)->descriptor(), out);
            return;
        case VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER:
            Put(
                hal::CombinedImageSamplerDescriptor{
                    ImageOf(data.pCombinedImageSampler),
                    FromHandle<Sampler>(data.pCombinedImageSampler->sampler)->descriptor()},
                out);
            return;
        case VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE:
            Put(ImageOf(data.pSampledImage), out);
            return;
        case VK_DESCRIPTOR_TYPE_STORAGE_IMAGE:
            Put(StorageImageOf(data.pStorageImage), out);
            return;
        case VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER:
            Put(TexelBufferOf(data.pUniformTexelBuffer), out);
            return;
        case VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER:
            Put(TexelBufferOf(data.pStorageTexelBuffer), out);
            return;
        case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER:
            Put(BufferOf(data.pUniformBuffer), out);
            return;
        case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER:
            Put(BufferOf(data.pStorageBuffer), out);
            return;
        default:
            // Set layouts hold no other type.
            return;
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdBindDescriptorBuffersEXT(VkCommandBuffer command_buffer,
                              uint32_t count,
                              const VkDescriptorBufferBindingInfoEXT* infos) {
    const auto buffers = FromHandle<CommandBuffer>(command_buffer)->descriptor_buffers();
    for (uint32_t i = 0; i < count; ++i) {
        buffers[i] = infos[i].address;
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdSetDescriptorBufferOffsets2EXT(VkCommandBuffer handle,
                                    const VkSetDescriptorBufferOffsetsInfoEXT* info) {
    if (!(info->stageFlags & VK_SHADER_STAGE_COMPUTE_BIT)) {
        return;
    }
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    const auto sets = FromHandle<PipelineLayout>(info->layout)->sets();
    for (uint32_t i = 0; i < info->setCount; ++i) {
        const uint32_t set = info->firstSet + i;
        // The place of a set without descriptors may be the very end of its buffer.
        const uint64_t buffer = command_buffer.descriptor_buffers()[info->pBufferIndices[i]];
        command_buffer.BindSetAddress(set,
                                      sets[set].size_bytes > 0 ? buffer + info->pOffsets[i] : 0);
    }
}

FORNAX_ENTRY_POINT(void)
vkCmdSetDescriptorBufferOffsetsEXT(VkCommandBuffer command_buffer,
                                   VkPipelineBindPoint,
                                   VkPipelineLayout layout,
                                   uint32_t first_set,
                                   uint32_t set_count,
                                   const uint32_t* buffer_indices,
                                   const VkDeviceSize* offsets) {
    const VkSetDescriptorBufferOffsetsInfoEXT info{
        .sType = VK_STRUCTURE_TYPE_SET_DESCRIPTOR_BUFFER_OFFSETS_INFO_EXT,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .layout = layout,
        .firstSet = first_set,
        .setCount = set_count,
        .pBufferIndices = buffer_indices,
        .pOffsets = offsets,
    };
    vkCmdSetDescriptorBufferOffsets2EXT(command_buffer, &info);
}

// A set of nothing but immutable samplers has no memory of the application's: they are pushed.
FORNAX_ENTRY_POINT(void)
vkCmdBindDescriptorBufferEmbeddedSamplers2EXT(
    VkCommandBuffer command_buffer,
    const VkBindDescriptorBufferEmbeddedSamplersInfoEXT* info) {
    if (!(info->stageFlags & VK_SHADER_STAGE_COMPUTE_BIT)) {
        return;
    }
    FromHandle<CommandBuffer>(command_buffer)
        ->PushDescriptors(*FromHandle<PipelineLayout>(info->layout), info->set);
}

FORNAX_ENTRY_POINT(void)
vkCmdBindDescriptorBufferEmbeddedSamplersEXT(VkCommandBuffer command_buffer,
                                             VkPipelineBindPoint,
                                             VkPipelineLayout layout,
                                             uint32_t set) {
    const VkBindDescriptorBufferEmbeddedSamplersInfoEXT info{
        .sType = VK_STRUCTURE_TYPE_BIND_DESCRIPTOR_BUFFER_EMBEDDED_SAMPLERS_INFO_EXT,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .layout = layout,
        .set = set,
    };
    vkCmdBindDescriptorBufferEmbeddedSamplers2EXT(command_buffer, &info);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetBufferOpaqueCaptureDescriptorDataEXT(VkDevice device,
                                          const VkBufferCaptureDescriptorDataInfoEXT*,
                                          void*) {
    return FailCapture(device);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetImageOpaqueCaptureDescriptorDataEXT(VkDevice device,
                                         const VkImageCaptureDescriptorDataInfoEXT*,
                                         void*) {
    return FailCapture(device);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetImageViewOpaqueCaptureDescriptorDataEXT(VkDevice device,
                                             const VkImageViewCaptureDescriptorDataInfoEXT*,
                                             void*) {
    return FailCapture(device);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetSamplerOpaqueCaptureDescriptorDataEXT(VkDevice device,
                                           const VkSamplerCaptureDescriptorDataInfoEXT*,
                                           void*) {
    return FailCapture(device);
}

}  // namespace fornax::driver
