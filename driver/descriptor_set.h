// Descriptor set: a piece of its pool's device memory, full of descriptors.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/descriptor_set_layout.h"
#include "driver/object.h"

namespace fornax::driver {

class DescriptorPool;
class DescriptorUpdateTemplate;

// Where the descriptors of one set are and what they are: of a descriptor set, or of descriptors
// that are pushed.
struct DescriptorStorage {
    std::span<const DescriptorBinding> bindings;
    std::byte* memory;  // as the host sees it
};

// Writes one descriptor from the structure that updates give for its type: a
// VkDescriptorBufferInfo, a VkDescriptorImageInfo or a VkBufferView. Immutable samplers stay.
// `type` is the binding's but of mutable descriptors, which it makes descriptors of that type.
void WriteDescriptor(const DescriptorBinding& binding,
                     VkDescriptorType type,
                     const void* info,
                     std::byte* descriptor);

// The write's dstSet is not looked at.
void WriteDescriptors(const DescriptorStorage& storage, const VkWriteDescriptorSet& write);

class DescriptorSet : public DeviceObject {
  public:
    using Handle = VkDescriptorSet;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DESCRIPTOR_SET;

    // `layout` is only used by updates, before which the application must not destroy it
    // ("Descriptor Set Layout" in the specification).
    DescriptorSet(Device& device,
                  const DescriptorSetLayout& layout,
                  uint64_t address,
                  std::byte* memory)
        : DeviceObject(device, kObjectType), layout_(&layout), address_(address), memory_(memory) {}

    // The device address of the packed descriptors.
    uint64_t address() const { return address_; }
    DescriptorStorage storage() const { return {layout_->bindings(), memory_}; }

    // Writes what kernels need before any update, into memory of zeros.
    void Prepare(const DescriptorSetLayout& layout, uint32_t variable_count);

  private:
    friend class DescriptorPool;

    const DescriptorSetLayout* layout_;
    uint64_t address_;
    std::byte* memory_;
    // The pool's list of live sets in the order of their memory.
    uint64_t pool_offset_bytes_ = 0;
    uint32_t pool_size_bytes_ = 0;
    uint32_t pool_overhead_bytes_ = 0;  // of these, what does not count
    DescriptorSet* previous_ = nullptr;
    DescriptorSet* next_ = nullptr;
};

}  // namespace fornax::driver
