// Updating descriptor sets: writes and copies of packed descriptors.
#include "driver/descriptor_set.h"

#include <algorithm>
#include <cstring>

#include "compiler/kernel/interface/binding_layout.h"
#include "driver/buffer.h"
#include "driver/chain.h"
#include "driver/entry_point.h"
#include "driver/image_view.h"
#include "driver/sampler.h"

namespace fornax::driver {
namespace {

// Where an array element is, which may lie beyond its binding's end, in the next one.
std::byte* DescriptorAt(const DescriptorStorage& storage,
                        const DescriptorBinding& binding,
                        uint32_t array_element) {
    return storage.memory + binding.offset_bytes +
           size_t{array_element} * binding.descriptor_bytes();
}

// The bytes of an inline uniform block follow its descriptor.
std::byte* InlineBytesAt(const DescriptorStorage& storage,
                         const DescriptorBinding& binding,
                         uint32_t offset) {
    return storage.memory + binding.offset_bytes + sizeof(hal::BufferDescriptor) + offset;
}

void CopyDescriptors(const VkCopyDescriptorSet& copy) {
    const auto from = FromHandle<DescriptorSet>(copy.srcSet)->storage();
    const auto to = FromHandle<DescriptorSet>(copy.dstSet)->storage();
    const DescriptorBinding& source = FindBinding(from.bindings, copy.srcBinding);
    const DescriptorBinding& destination = FindBinding(to.bindings, copy.dstBinding);
    if (source.inline_block()) {
        // "srcArrayElement, dstArrayElement and descriptorCount are in bytes."
        std::memmove(InlineBytesAt(to, destination, copy.dstArrayElement),
                     InlineBytesAt(from, source, copy.srcArrayElement), copy.descriptorCount);
        return;
    }
    const std::byte* in = DescriptorAt(from, source, copy.srcArrayElement);
    std::byte* out = DescriptorAt(to, destination, copy.dstArrayElement);
    // A mutable descriptor may be copied to and from one of the type that it has, which is smaller:
    // that part of both is the same.
    const size_t out_stride = destination.descriptor_bytes();
    const size_t in_stride = source.descriptor_bytes();
    if (!destination.has_immutable_samplers()) {
        if (in_stride == out_stride) {
            std::memmove(out, in, copy.descriptorCount * out_stride);
            return;
        }
        for (uint32_t i = 0; i < copy.descriptorCount; ++i) {
            std::memmove(out + i * out_stride, in + i * in_stride, std::min(in_stride, out_stride));
        }
        return;
    }
    // VUID-VkCopyDescriptorSet-dstBinding-02753: these are combined image samplers.
    for (uint32_t i = 0; i < copy.descriptorCount; ++i) {
        std::memmove(out + i * out_stride, in + i * in_stride, sizeof(hal::SampledImageDescriptor));
    }
}

// A null view gives the null descriptor.
hal::SampledImageDescriptor ImageOf(const VkDescriptorImageInfo& info) {
    const auto* view = FromHandle<ImageView>(info.imageView);
    return view ? view->descriptor() : NullImageDescriptor();
}

hal::ImageDescriptor StorageImageOf(const VkDescriptorImageInfo& info) {
    const auto* view = FromHandle<ImageView>(info.imageView);
    return view ? view->storage_descriptor() : NullImageDescriptor().image;
}

template <typename T>
void Put(const T& descriptor, std::byte* out) {
    std::memcpy(out, &descriptor, sizeof(descriptor));
}

// Writes `count` descriptors from an array of structures; the loop is compiled for each kind.
template <typename Info, typename Write>
void WriteArrayElements(const Info* infos,
                        uint32_t count,
                        std::byte* out,
                        size_t stride,
                        Write&& write) {
    for (uint32_t i = 0; i < count; ++i, out += stride) {
        write(infos[i], out);
    }
}

}  // namespace

void WriteDescriptor(const DescriptorBinding& binding,
                     VkDescriptorType type,
                     const void* info,
                     std::byte* out) {
    const auto& image_info = *static_cast<const VkDescriptorImageInfo*>(info);
    switch (type) {
        case VK_DESCRIPTOR_TYPE_STORAGE_IMAGE:
            Put(StorageImageOf(image_info), out);
            return;
        case VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE:
        case VK_DESCRIPTOR_TYPE_INPUT_ATTACHMENT:
            Put(ImageOf(image_info), out);
            return;
        case VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER:
            Put(ImageOf(image_info), out);
            out += offsetof(hal::CombinedImageSamplerDescriptor, sampler);
            [[fallthrough]];
        case VK_DESCRIPTOR_TYPE_SAMPLER:
            if (!binding.has_immutable_samplers()) {
                Put(FromHandle<Sampler>(image_info.sampler)->descriptor(), out);
            }
            return;
        case VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER:
        case VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER: {
            const auto* view = FromHandle<BufferView>(*static_cast<const VkBufferView*>(info));
            Put(view ? view->descriptor() : NullImageDescriptor().image, out);
            return;
        }
        default:
            Put(MakeBufferDescriptor(*static_cast<const VkDescriptorBufferInfo*>(info)), out);
            return;
    }
}

void DescriptorSet::Prepare(const DescriptorSetLayout& layout, uint32_t variable_count) {
    for (const DescriptorBinding& binding : layout.bindings()) {
        if (binding.inline_block()) {
            const uint32_t size = binding.variable_count ? variable_count : binding.count;
            auto* block = reinterpret_cast<hal::BufferDescriptor*>(memory_ + binding.offset_bytes);
            if (size > 0) {
                *block = {address_ + binding.offset_bytes + sizeof(*block), size};
            }
        } else if (binding.variable_count) {
            const uint32_t last = std::max(variable_count, 1u) - 1;
            std::memcpy(
                memory_ + binding.offset_bytes - kernel::BindingLayout::kVariableHeaderBytes, &last,
                sizeof(last));
        }
    }
    WriteImmutableSamplers(layout.bindings(), layout.immutable_samplers(), memory_, variable_count);
}

namespace {

// Writes all descriptors that are no buffers, apart, so that what these need is not set up for each
// write of a buffer.
[[gnu::noinline]] void WriteOthers(const DescriptorStorage& storage,
                                   const DescriptorBinding& binding,
                                   const VkWriteDescriptorSet& write) {
    std::byte* out = DescriptorAt(storage, binding, write.dstArrayElement);
    const size_t stride = binding.descriptor_bytes();
    switch (write.descriptorType) {
        case VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK: {
            const auto* block = FindInChain<VkWriteDescriptorSetInlineUniformBlock>(
                write.pNext, VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET_INLINE_UNIFORM_BLOCK);
            if (block) {
                std::memcpy(InlineBytesAt(storage, binding, write.dstArrayElement), block->pData,
                            block->dataSize);
            }
            return;
        }
        case VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER:
        case VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER:
            WriteArrayElements(write.pTexelBufferView, write.descriptorCount, out, stride,
                               [&](const VkBufferView& view, std::byte* descriptor) {
                                   WriteDescriptor(binding, write.descriptorType, &view,
                                                   descriptor);
                               });
            return;
        default:
            WriteArrayElements(write.pImageInfo, write.descriptorCount, out, stride,
                               [&](const VkDescriptorImageInfo& info, std::byte* descriptor) {
                                   WriteDescriptor(binding, write.descriptorType, &info,
                                                   descriptor);
                               });
            return;
    }
}

inline void Write(const DescriptorStorage& storage, const VkWriteDescriptorSet& write) {
    // "descriptorType must be the same type as that specified in [...] dstBinding", but for mutable
    // descriptors, so the write says all that the binding does.
    const DescriptorBinding& binding = FindBinding(storage.bindings, write.dstBinding);
    switch (write.descriptorType) {
        case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER:
        case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER:
        case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC:
        case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC:
            WriteArrayElements(write.pBufferInfo, write.descriptorCount,
                               DescriptorAt(storage, binding, write.dstArrayElement),
                               binding.descriptor_bytes(),
                               [](const VkDescriptorBufferInfo& info, std::byte* descriptor) {
                                   Put(MakeBufferDescriptor(info), descriptor);
                               });
            return;
        default:
            WriteOthers(storage, binding, write);
            return;
    }
}

}  // namespace

void WriteDescriptors(const DescriptorStorage& storage, const VkWriteDescriptorSet& write) {
    Write(storage, write);
}

FORNAX_ENTRY_POINT(void)
vkUpdateDescriptorSets(VkDevice,
                       uint32_t write_count,
                       const VkWriteDescriptorSet* writes,
                       uint32_t copy_count,
                       const VkCopyDescriptorSet* copies) {
    // "Writes happen first, then the copies, each in order."
    for (uint32_t i = 0; i < write_count; ++i) {
        Write(FromHandle<DescriptorSet>(writes[i].dstSet)->storage(), writes[i]);
    }
    for (uint32_t i = 0; i < copy_count; ++i) {
        CopyDescriptors(copies[i]);
    }
}

}  // namespace fornax::driver
