// Descriptor set layout: how the bindings of a set lie in the set's memory.
//
// A set's memory holds a descriptor for each array element of each binding (hal/kernel_abi.h,
// hal/image_abi.h), packed in increasing order of bindings. So an update that runs over the end of
// a binding goes on in the next one, which has the same type, as "consecutive binding updates" ask,
// without any look at the layout.
//
// An inline uniform block is one descriptor and, behind it, the bytes that this points to. Before a
// binding of variable count a header tells kernels how many descriptors the set has
// (kernel::BindingLayout::variable_count). Both are what the driver writes, so sets in descriptor
// buffers, which the application writes, have neither.
#pragma once

#include <optional>
#include <span>

#include <vulkan/vulkan_core.h>

#include "compiler/kernel/interface/binding_layout.h"
#include "driver/object.h"

namespace fornax::driver {

struct DescriptorBinding {
    uint32_t binding;
    VkDescriptorType type;
    uint32_t count;                 // array elements, bytes of an inline block; 0 is unused
    uint32_t offset_bytes;          // of element 0 in the set's memory
    uint32_t first_dynamic_offset;  // index of element 0 among the set's dynamic offsets
    // The index of element 0 among the layout's immutable samplers, or kNone.
    uint32_t first_immutable_sampler;
    bool variable_count;  // the last one: sets may have fewer
    // Whether the set is in a descriptor buffer, where the bytes of an inline block have no
    // descriptor.
    bool in_buffer;
    // From one array element to the next: of a mutable descriptor, what its largest type needs.
    uint32_t element_bytes;
    static constexpr uint32_t kNone = UINT32_MAX;

    uint32_t descriptor_bytes() const { return element_bytes; }
    bool is_mutable() const { return type == VK_DESCRIPTOR_TYPE_MUTABLE_EXT; }
    bool has_immutable_samplers() const { return first_immutable_sampler != kNone; }

    bool inline_block() const { return type == VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK; }
    // The bytes of `number` array elements, or `number` bytes of an inline block.
    uint64_t SizeOf(uint64_t number) const {
        if (!inline_block()) {
            return number * descriptor_bytes();
        }
        return (in_buffer ? 0 : sizeof(hal::BufferDescriptor)) + (number + 15) / 16 * 16;
    }
    bool dynamic() const {
        return type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC ||
               type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
    }
};

// The bindings are sorted. Null if none has the number.
const DescriptorBinding* BindingOrNull(std::span<const DescriptorBinding> bindings,
                                       uint32_t binding);

// The bindings are sorted; the binding must exist (VUID-VkWriteDescriptorSet-dstBinding-00315).
const DescriptorBinding& SearchBinding(std::span<const DescriptorBinding> bindings,
                                       uint32_t binding);
inline const DescriptorBinding& FindBinding(std::span<const DescriptorBinding> bindings,
                                            uint32_t binding) {
    // Most layouts number their bindings without gaps.
    return binding < bindings.size() && bindings[binding].binding == binding
               ? bindings[binding]
               : SearchBinding(bindings, binding);
}

// Where in a set's memory a write of so many array elements ends; none if no binding has the number
// and holds descriptors of the type.
std::optional<uint64_t> EndOfWrite(std::span<const DescriptorBinding> bindings,
                                   uint32_t binding,
                                   VkDescriptorType type,
                                   uint32_t array_element,
                                   uint32_t count);

// What the kernel compiler calls the type; none if sets cannot hold such descriptors.
std::optional<kernel::BindingLayout::Kind> DescriptorKind(VkDescriptorType type);

// What a descriptor takes in a set's memory; 0 for a type that sets cannot hold. A mutable one
// takes what the largest of the types at `index` of the chained
// VkMutableDescriptorTypeCreateInfoEXT does, and without such a list the most that any does.
uint32_t DescriptorBytes(VkDescriptorType type, const void* chain, uint32_t index);

// Writes the immutable samplers into a set's memory, which is what updates leave alone.
void WriteImmutableSamplers(std::span<const DescriptorBinding> bindings,
                            std::span<const hal::SamplerDescriptor> samplers,
                            std::byte* set_memory,
                            uint32_t variable_count = UINT32_MAX);

class DescriptorSetLayout : public DeviceObject {
  public:
    using Handle = VkDescriptorSetLayout;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT;

    // Bytes that the constructor needs behind the object.
    static size_t TrailingBytes(const VkDescriptorSetLayoutCreateInfo& info);

    DescriptorSetLayout(Device& device, const VkDescriptorSetLayoutCreateInfo& info);

    std::span<const DescriptorBinding> bindings() const {
        return TrailingOf<const DescriptorBinding>(this, binding_count_);
    }
    std::span<const hal::SamplerDescriptor> immutable_samplers() const {
        return TrailingOf<const hal::SamplerDescriptor>(this, immutable_sampler_count_,
                                                        bindings().size_bytes());
    }
    // With all the descriptors that the last binding can have.
    uint32_t size_bytes() const { return size_bytes_; }
    // The binding whose number of descriptors each set decides, or null.
    const DescriptorBinding* variable_binding() const {
        return binding_count_ > 0 && bindings().back().variable_count ? &bindings().back()
                                                                      : nullptr;
    }
    uint32_t dynamic_offset_count() const { return dynamic_offset_count_; }
    // For vkCmdPushDescriptorSet; no set is allocated with it.
    bool is_push() const { return is_push_; }
    // For sets in descriptor buffers.
    bool in_buffer() const { return in_buffer_; }

  private:
    uint32_t binding_count_;
    uint32_t immutable_sampler_count_ = 0;
    uint32_t size_bytes_ = 0;
    uint32_t dynamic_offset_count_ = 0;
    bool is_push_;
    bool in_buffer_;
};

}  // namespace fornax::driver
