// Descriptor pools, and allocating sets from them.
#include "driver/descriptor_pool.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "compiler/kernel/interface/binding_layout.h"
#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {

// A place for a set's object: a set, or a link in the list of free places.
union DescriptorPool::Slot {
    Slot* next_free;
    alignas(DescriptorSet) std::byte set[sizeof(DescriptorSet)];
};

size_t DescriptorPool::TrailingBytes(const VkDescriptorPoolCreateInfo& info) {
    return info.maxSets * sizeof(Slot);
}

DescriptorPool::DescriptorPool(Device& device, const VkDescriptorPoolCreateInfo& info)
    : DeviceObject(device, kObjectType), max_sets_(info.maxSets) {
    // The first slot is handed out first.
    const auto slots = TrailingOf<Slot>(this, max_sets_);
    for (size_t i = slots.size(); i-- > 0;) {
        slots[i].next_free = free_slots_;
        free_slots_ = &slots[i];
    }
}

DescriptorPool::~DescriptorPool() {
    Reset();
}

VkResult DescriptorPool::Init(const VkDescriptorPoolCreateInfo& info) {
    for (uint32_t i = 0; i < info.poolSizeCount; ++i) {
        // Other types can be asked for, but no set layout has them.
        const VkDescriptorPoolSize& size = info.pPoolSizes[i];
        capacity_bytes_ +=
            size.type == VK_DESCRIPTOR_TYPE_INLINE_UNIFORM_BLOCK
                ? size.descriptorCount
                : uint64_t{size.descriptorCount} * DescriptorBytes(size.type, info.pNext, i);
    }
    if (const auto* blocks = FindInChain<VkDescriptorPoolInlineUniformBlockCreateInfo>(
            info.pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_INLINE_UNIFORM_BLOCK_CREATE_INFO)) {
        // The descriptor of each, and what its bytes are rounded up by.
        capacity_bytes_ +=
            uint64_t{blocks->maxInlineUniformBlockBindings} * 2 * sizeof(hal::BufferDescriptor);
    }
    capacity_bytes_ = (capacity_bytes_ + 15) / 16 * 16;
    // Sets without descriptors still have an address.
    return memory_.Allocate(
        std::max<uint64_t>(capacity_bytes_ + uint64_t{max_sets_} * kVariableOverheadBytes,
                           sizeof(hal::BufferDescriptor)));
}

bool DescriptorPool::FindPlace(uint64_t size_bytes,
                               uint64_t end_bytes,
                               DescriptorSet** after,
                               uint64_t* offset_bytes) const {
    const auto end_of = [](const DescriptorSet* set) {
        return set ? set->pool_offset_bytes_ + set->pool_size_bytes_ : 0;
    };
    *after = last_;
    *offset_bytes = end_of(last_);
    if (end_bytes >= *offset_bytes + size_bytes) {
        return true;
    }
    DescriptorSet* previous = nullptr;
    for (DescriptorSet* set = first_; set; previous = set, set = set->next_) {
        if (set->pool_offset_bytes_ - end_of(previous) >= size_bytes) {
            *after = previous;
            *offset_bytes = end_of(previous);
            return true;
        }
    }
    return false;
}

VkResult DescriptorPool::Allocate(const DescriptorSetLayout& layout,
                                  uint32_t variable_count,
                                  DescriptorSet** set) {
    uint32_t size_bytes = layout.size_bytes();
    uint32_t overhead_bytes = 0;
    const DescriptorBinding* variable = layout.variable_binding();
    if (variable) {
        // VUID-VkDescriptorSetVariableDescriptorCountAllocateInfo-pSetLayouts-03046: not above it.
        variable_count = std::min(variable_count, variable->count);
        size_bytes =
            static_cast<uint32_t>(variable->offset_bytes + variable->SizeOf(variable_count));
        if (!variable->inline_block()) {
            size_bytes -= kernel::BindingLayout::kVariableHeaderBytes;
            overhead_bytes = kernel::BindingLayout::kVariableHeaderBytes +
                             (variable_count == 0 ? variable->descriptor_bytes() : 0);
        }
    }
    if (!free_slots_) {
        return Fail(device(), VK_ERROR_OUT_OF_POOL_MEMORY,
                    "The descriptor pool's {} sets are all allocated.", max_sets_);
    }
    if (capacity_bytes_ - used_bytes_ < size_bytes) {
        return Fail(device(), VK_ERROR_OUT_OF_POOL_MEMORY,
                    "A descriptor set of {} bytes was asked for; {} of the pool's {} are free.",
                    size_bytes, capacity_bytes_ - used_bytes_, capacity_bytes_);
    }
    DescriptorSet* after = nullptr;
    uint64_t offset_bytes = 0;
    const uint32_t all_bytes = size_bytes + overhead_bytes;
    const uint64_t end_bytes = capacity_bytes_ + overhead_bytes_ + overhead_bytes;
    if (!FindPlace(all_bytes, end_bytes, &after, &offset_bytes)) {
        return Fail(device(), VK_ERROR_FRAGMENTED_POOL,
                    "A descriptor set of {} bytes was asked for; the {} bytes that are free in the "
                    "pool are in smaller pieces.",
                    size_bytes, capacity_bytes_ - used_bytes_);
    }

    Slot* slot = free_slots_;
    free_slots_ = slot->next_free;
    auto* created =
        new (slot->set) DescriptorSet(device(), layout, memory_->address() + offset_bytes,
                                      memory_->host_pointer() + offset_bytes);
    created->pool_offset_bytes_ = offset_bytes;
    created->pool_size_bytes_ = all_bytes;
    created->pool_overhead_bytes_ = overhead_bytes;
    created->previous_ = after;
    created->next_ = after ? after->next_ : first_;
    (after ? after->next_ : first_) = created;
    (created->next_ ? created->next_->previous_ : last_) = created;
    used_bytes_ += size_bytes;
    overhead_bytes_ += overhead_bytes;
    // Descriptors that are never written are null ones, not those of a set before.
    if (offset_bytes < touched_bytes_) {
        std::memset(memory_->host_pointer() + offset_bytes, 0,
                    std::min<uint64_t>(all_bytes, touched_bytes_ - offset_bytes));
    }
    touched_bytes_ = std::max(touched_bytes_, offset_bytes + all_bytes);
    created->Prepare(layout, variable_count);
    *set = created;
    return VK_SUCCESS;
}

void DescriptorPool::Free(DescriptorSet* set) {
    (set->previous_ ? set->previous_->next_ : first_) = set->next_;
    (set->next_ ? set->next_->previous_ : last_) = set->previous_;
    used_bytes_ -= set->pool_size_bytes_ - set->pool_overhead_bytes_;
    overhead_bytes_ -= set->pool_overhead_bytes_;
    set->~DescriptorSet();
    auto* slot = reinterpret_cast<Slot*>(set);
    slot->next_free = free_slots_;
    free_slots_ = slot;
}

void DescriptorPool::Reset() {
    while (last_) {
        Free(last_);
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateDescriptorPool(VkDevice device_handle,
                       const VkDescriptorPoolCreateInfo* info,
                       const VkAllocationCallbacks* callbacks,
                       VkDescriptorPool* handle) {
    auto& device = *FromHandle<Device>(device_handle);
    Owned pool(
        Allocator(callbacks, device.allocator()),
        NewObject<DescriptorPool>(device, callbacks, DescriptorPool::TrailingBytes(*info), *info));
    if (!pool) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    FORNAX_RETURN_IF_FAILED(pool->Init(*info));
    *handle = ToHandle(pool.Release());
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyDescriptorPool(VkDevice device,
                        VkDescriptorPool pool,
                        const VkAllocationCallbacks* callbacks) {
    DestroyObject<DescriptorPool>(device, callbacks, pool);
}

FORNAX_ENTRY_POINT(VkResult)
vkResetDescriptorPool(VkDevice, VkDescriptorPool pool, VkDescriptorPoolResetFlags) {
    FromHandle<DescriptorPool>(pool)->Reset();
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkAllocateDescriptorSets(VkDevice, const VkDescriptorSetAllocateInfo* info, VkDescriptorSet* sets) {
    auto& pool = *FromHandle<DescriptorPool>(info->descriptorPool);
    // Without counts, bindings of variable count have none.
    const auto* counts = FindInChain<VkDescriptorSetVariableDescriptorCountAllocateInfo>(
        info->pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_ALLOCATE_INFO);
    for (uint32_t i = 0; i < info->descriptorSetCount; ++i) {
        DescriptorSet* set = nullptr;
        const auto& layout = *FromHandle<DescriptorSetLayout>(info->pSetLayouts[i]);
        const uint32_t count =
            counts && i < counts->descriptorSetCount ? counts->pDescriptorCounts[i] : 0;
        if (const VkResult result = pool.Allocate(layout, count, &set); result != VK_SUCCESS) {
            // "If the creation of any fails, all are null."
            while (i > 0) {
                pool.Free(FromHandle<DescriptorSet>(sets[--i]));
            }
            std::fill_n(sets, info->descriptorSetCount, VkDescriptorSet(VK_NULL_HANDLE));
            return result;
        }
        sets[i] = ToHandle(set);
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(VkResult)
vkFreeDescriptorSets(VkDevice,
                     VkDescriptorPool pool_handle,
                     uint32_t count,
                     const VkDescriptorSet* sets) {
    auto& pool = *FromHandle<DescriptorPool>(pool_handle);
    for (uint32_t i = 0; i < count; ++i) {
        if (auto* set = FromHandle<DescriptorSet>(sets[i])) {
            pool.Free(set);
        }
    }
    return VK_SUCCESS;
}

}  // namespace fornax::driver
