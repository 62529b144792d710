// Descriptor pool: one piece of device memory out of which descriptor sets are allocated.
//
// Sets are placed behind the last one while there is room, then into the first gap that freed sets
// left. A pool's capacity is counted in bytes of descriptors, so it may hold more of one type than
// was asked for, never less in all.
//
// The header of a binding of variable count (driver/descriptor_set_layout.h) is not among what an
// application counts: the pool has memory for it beside its capacity.
#pragma once

#include <vulkan/vulkan_core.h>

#include "compiler/kernel/interface/binding_layout.h"
#include "driver/descriptor_set.h"
#include "driver/memory_report.h"
#include "driver/object.h"

namespace fornax::driver {

// What a set with a binding of variable count takes at most beside its descriptors: the header, and
// one descriptor where it has none.
inline constexpr uint32_t kVariableOverheadBytes =
    kernel::BindingLayout::kVariableHeaderBytes + sizeof(hal::CombinedImageSamplerDescriptor);

// Used by one thread at a time ("externally synchronized").
class DescriptorPool : public DeviceObject {
  public:
    using Handle = VkDescriptorPool;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_DESCRIPTOR_POOL;

    // Bytes that the pool needs behind the object: its sets' objects.
    static size_t TrailingBytes(const VkDescriptorPoolCreateInfo& info);

    DescriptorPool(Device& device, const VkDescriptorPoolCreateInfo& info);
    ~DescriptorPool();

    VkResult Init(const VkDescriptorPoolCreateInfo& info);

    // VK_ERROR_OUT_OF_POOL_MEMORY, or VK_ERROR_FRAGMENTED_POOL when freed memory is in too small
    // pieces.
    // `variable_count`: descriptors of the binding of variable count, if the layout has one.
    VkResult Allocate(const DescriptorSetLayout& layout,
                      uint32_t variable_count,
                      DescriptorSet** set);
    void Free(DescriptorSet* set);
    void Reset();

  private:
    union Slot;

    // The live set behind which `size_bytes` are free (null: at the start), or false.
    bool FindPlace(uint64_t size_bytes,
                   uint64_t end_bytes,
                   DescriptorSet** after,
                   uint64_t* offset_bytes) const;

    ObjectMemory memory_{*this};
    uint64_t capacity_bytes_ = 0;
    uint64_t used_bytes_ = 0;
    uint64_t overhead_bytes_ = 0;  // of the live sets; beside the capacity
    uint64_t touched_bytes_ = 0;   // memory behind is still as it was allocated: zero
    uint32_t max_sets_;
    Slot* free_slots_ = nullptr;
    DescriptorSet* first_ = nullptr;
    DescriptorSet* last_ = nullptr;
};

}  // namespace fornax::driver
