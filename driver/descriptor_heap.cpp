// Descriptor heaps (VK_EXT_descriptor_heap): writing descriptors without objects, and binding the
// memory that holds them. To kernels a heap is a set (kernel::ResourceLayout).
#include <cstring>

#include "compiler/kernel/interface/resource_layout.h"
#include "driver/command_buffer.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/image_view.h"
#include "driver/sampler.h"

namespace fornax::driver {
namespace {

template <typename T>
void Put(const T& descriptor, void* out) {
    std::memcpy(out, &descriptor, sizeof(descriptor));
}

VkResult PutSampledImage(Device& device, const hal::SampledImageDescriptor& image, void* out) {
    hal::SampledImageTail tail;
    std::memcpy(tail.scale, image.image.scale, sizeof(tail.scale));
    std::memcpy(tail.level_offsets, image.level_offsets, sizeof(tail.level_offsets));
    const auto address = device.image_tails().AddressOf(device.hal(), tail);
    if (!address) {
        return Fail(device, address.error());
    }
    hal::ShortSampledImageDescriptor descriptor;
    std::memcpy(descriptor.head, &image.image, sizeof(descriptor.head));
    descriptor.tail = *address;
    Put(descriptor, out);
    return VK_SUCCESS;
}

// "If nullDescriptor is enabled", each pointer may be null.
VkResult WriteResource(Device& device, const VkResourceDescriptorInfoEXT& info, void* out) {
    switch (info.type) {
        case VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE:
        case VK_DESCRIPTOR_TYPE_STORAGE_IMAGE: {
            const bool sampled = info.type == VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE;
            if (!info.data.pImage) {
                if (sampled) {
                    return PutSampledImage(device, NullImageDescriptor(), out);
                }
                Put(NullImageDescriptor().image, out);
                return VK_SUCCESS;
            }
            ImageView view(device);
            FORNAX_RETURN_IF_FAILED(view.Init(*info.data.pImage->pView));
            if (sampled) {
                return PutSampledImage(device, view.descriptor(), out);
            }
            Put(view.storage_descriptor(), out);
            return VK_SUCCESS;
        }
        case VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER:
        case VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER: {
            hal::ImageDescriptor texels = NullImageDescriptor().image;
            if (const auto* buffer = info.data.pTexelBuffer) {
                const auto descriptor = MakeTexelBufferDescriptor(
                    buffer->format, buffer->addressRange.address, buffer->addressRange.size);
                if (!descriptor) {
                    return Fail(device, VK_ERROR_VALIDATION_FAILED_EXT,
                                "A texel buffer of format {} was asked for, which has no features "
                                "that one needs.",
                                static_cast<int>(buffer->format));
                }
                texels = *descriptor;
            }
            Put(texels, out);
            return VK_SUCCESS;
        }
        case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER:
        case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER: {
            const VkDeviceAddressRangeEXT* range = info.data.pAddressRange;
            Put(range ? hal::BufferDescriptor{range->address, range->size}
                      : hal::BufferDescriptor{},
                out);
            return VK_SUCCESS;
        }
        default:
            return Fail(device, VK_ERROR_VALIDATION_FAILED_EXT,
                        "A descriptor of type {} was asked for, which heaps do not hold.",
                        static_cast<int>(info.type));
    }
}

}  // namespace

FORNAX_ENTRY_POINT(VkDeviceSize)
vkGetPhysicalDeviceDescriptorSizeEXT(VkPhysicalDevice, VkDescriptorType type) {
    switch (type) {
        case VK_DESCRIPTOR_TYPE_SAMPLER:
            return sizeof(hal::SamplerDescriptor);
        case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER:
        case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER:
            return sizeof(hal::BufferDescriptor);
        default:
            return sizeof(hal::ImageDescriptor);
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkWriteSamplerDescriptorsEXT(VkDevice device_handle,
                             uint32_t count,
                             const VkSamplerCreateInfo* infos,
                             const VkHostAddressRangeEXT* descriptors) {
    for (uint32_t i = 0; i < count; ++i) {
        Sampler sampler(*FromHandle<Device>(device_handle));
        FORNAX_RETURN_IF_FAILED(sampler.Init(infos[i]));
        Put(sampler.descriptor(), descriptors[i].address);
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkWriteResourceDescriptorsEXT(VkDevice device,
                              uint32_t count,
                              const VkResourceDescriptorInfoEXT* infos,
                              const VkHostAddressRangeEXT* descriptors) {
    for (uint32_t i = 0; i < count; ++i) {
        FORNAX_RETURN_IF_FAILED(
            WriteResource(*FromHandle<Device>(device), infos[i], descriptors[i].address));
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkCmdBindSamplerHeapEXT(VkCommandBuffer command_buffer, const VkBindHeapInfoEXT* info) {
    FromHandle<CommandBuffer>(command_buffer)
        ->BindHeap(kernel::ResourceLayout::kSamplerHeapSet, *info);
}

FORNAX_ENTRY_POINT(void)
vkCmdBindResourceHeapEXT(VkCommandBuffer command_buffer, const VkBindHeapInfoEXT* info) {
    FromHandle<CommandBuffer>(command_buffer)
        ->BindHeap(kernel::ResourceLayout::kResourceHeapSet, *info);
}

FORNAX_ENTRY_POINT(void)
vkCmdPushDataEXT(VkCommandBuffer command_buffer, const VkPushDataInfoEXT* info) {
    auto& commands = *FromHandle<CommandBuffer>(command_buffer);
    if (info->offset > hal::kMaxPushConstantBytes ||
        info->data.size > hal::kMaxPushConstantBytes - info->offset) {
        // VUID-VkPushDataInfoEXT-offset-11243.
        commands.Error(Fail(commands, VK_ERROR_VALIDATION_FAILED_EXT,
                            "{} bytes of push data were pushed to the offset {}; there are {}.",
                            info->data.size, info->offset, hal::kMaxPushConstantBytes));
        return;
    }
    commands.PushConstants(info->offset,
                           {static_cast<const std::byte*>(info->data.address), info->data.size},
                           hal::kMaxPushConstantBytes);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetImageOpaqueCaptureDataEXT(VkDevice device, uint32_t, const VkImage*, VkHostAddressRangeEXT*) {
    return Fail(*FromHandle<Device>(device), VK_ERROR_FEATURE_NOT_PRESENT,
                "The data of images was captured, but Fornax does not have "
                "descriptorHeapCaptureReplay.");
}

}  // namespace fornax::driver
