// Pipeline layout: the sets and push constants of a pipeline. It copies what it needs of its set
// layouts, which the application may destroy.
#pragma once

#include <memory>
#include <span>

#include <vulkan/vulkan_core.h>

#include "compiler/kernel/interface/resource_layout.h"
#include "driver/descriptor_set_layout.h"
#include "driver/object.h"

namespace fornax::driver {

class PipelineLayout : public DeviceObject {
  public:
    using Handle = VkPipelineLayout;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_PIPELINE_LAYOUT;

    struct Set {
        std::span<const DescriptorBinding> bindings;  // sorted
        std::span<const hal::SamplerDescriptor> immutable_samplers;
        uint32_t size_bytes;
        uint32_t first_dynamic_offset;  // among those of all sets, in the order of set numbers
        uint32_t dynamic_offset_count;
        bool is_push;
    };

    // Bytes that the constructor needs behind the object.
    static size_t TrailingBytes(const VkPipelineLayoutCreateInfo& info);

    PipelineLayout(Device& device, const VkPipelineLayoutCreateInfo& info);
    // What a pipeline with descriptor heaps, to which none is given, has instead.
    PipelineLayout(Device& device, std::shared_ptr<const kernel::ResourceLayout> heap);

    std::span<const Set> sets() const { return TrailingOf<const Set>(this, set_count_); }
    uint32_t dynamic_offset_count() const { return dynamic_offset_count_; }
    // Null where there are sets.
    const std::shared_ptr<const kernel::ResourceLayout>& heap() const { return heap_; }
    // The end of the highest range that the compute stage sees.
    uint32_t push_constant_bytes() const { return push_constant_bytes_; }

    kernel::ResourceLayout MakeResourceLayout() const;

  private:
    uint32_t set_count_;
    uint32_t dynamic_offset_count_ = 0;
    uint32_t push_constant_bytes_ = 0;
    std::shared_ptr<const kernel::ResourceLayout> heap_;
};

}  // namespace fornax::driver
