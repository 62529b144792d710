// Descriptor update template (VK_KHR_descriptor_update_template): where in a block of the
// application's memory the descriptors of a set are found.
#pragma once

#include <optional>
#include <span>

#include <vulkan/vulkan_core.h>

#include "driver/descriptor_set_layout.h"
#include "driver/object.h"

namespace fornax::driver {

class DescriptorUpdateTemplate : public DeviceObject {
  public:
    using Handle = VkDescriptorUpdateTemplate;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DESCRIPTOR_UPDATE_TEMPLATE;

    // One entry, with its binding resolved to a place in the set's memory.
    struct Entry {
        DescriptorBinding binding;
        VkDescriptorType type;
        uint32_t set_offset_bytes;
        uint32_t count;
        size_t data_offset_bytes;
        size_t data_stride_bytes;
    };

    // `trailing` memory for one Entry an entry of `info` follows the object.
    DescriptorUpdateTemplate(Device& device, const VkDescriptorUpdateTemplateCreateInfo& info);

    // Writes the descriptors that `data` holds into a set's memory (DescriptorStorage::memory).
    void Apply(std::byte* set_memory, const void* data) const;
    // Behind the last byte of a set's memory that it writes; none if an entry has a binding that
    // the layout does not have, or has with another type.
    std::optional<uint64_t> end_bytes() const { return end_bytes_; }

  private:
    uint32_t entry_count_;
    std::optional<uint64_t> end_bytes_ = 0;
};

}  // namespace fornax::driver
