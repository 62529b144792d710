// Descriptor set layout: how the bindings of a set lie in the set's memory.
//
// A set's memory holds one hal::BufferDescriptor for each array element of each binding, packed in
// increasing order of bindings. So an update that runs over the end of a binding goes on in the
// next one, as "consecutive binding updates" ask, without any look at the layout.
#pragma once

#include <span>

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "hal/kernel_abi.h"

namespace fornax::driver {

struct DescriptorBinding {
    uint32_t binding;
    VkDescriptorType type;
    uint32_t count;                 // array elements; 0 is an unused binding
    uint32_t offset_bytes;          // of element 0 in the set's memory
    uint32_t first_dynamic_offset;  // index of element 0 among the set's dynamic offsets

    bool dynamic() const {
        return type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC ||
               type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC;
    }
};

// The bindings are sorted; the binding must exist (VUID-VkWriteDescriptorSet-dstBinding-00315).
const DescriptorBinding& FindBinding(std::span<const DescriptorBinding> bindings, uint32_t binding);

// Whether sets can hold descriptors of the type.
bool IsSupportedDescriptor(VkDescriptorType type);

class DescriptorSetLayout : public DeviceObject {
  public:
    using Handle = VkDescriptorSetLayout;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT;

    // `trailing` memory for `info.bindingCount` DescriptorBindings follows the object.
    DescriptorSetLayout(Device& device, const VkDescriptorSetLayoutCreateInfo& info);

    std::span<const DescriptorBinding> bindings() const {
        return TrailingOf<const DescriptorBinding>(this, binding_count_);
    }
    uint32_t size_bytes() const { return size_bytes_; }
    uint32_t dynamic_offset_count() const { return dynamic_offset_count_; }
    // For vkCmdPushDescriptorSet; no set is allocated with it.
    bool is_push() const { return is_push_; }

  private:
    uint32_t binding_count_;
    uint32_t size_bytes_ = 0;
    uint32_t dynamic_offset_count_ = 0;
    bool is_push_;
};

}  // namespace fornax::driver
