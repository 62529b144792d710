// Command pools, and allocating command buffers from them.
#include "driver/command_pool.h"

#include <algorithm>

#include "driver/command_buffer.h"
#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {

CommandPool::~CommandPool() {
    while (first_) {
        Free(first_);
    }
}

CommandBuffer* CommandPool::Allocate(VkCommandBufferLevel level) {
    auto* command_buffer =
        allocator_.New<CommandBuffer>(VK_SYSTEM_ALLOCATION_SCOPE_OBJECT, 0, device(), *this, level);
    if (!command_buffer) {
        return nullptr;
    }
    command_buffer->next_ = first_;
    if (first_) {
        first_->previous_ = command_buffer;
    }
    first_ = command_buffer;
    return command_buffer;
}

void CommandPool::Free(CommandBuffer* command_buffer) {
    if (command_buffer->previous_) {
        command_buffer->previous_->next_ = command_buffer->next_;
    } else {
        first_ = command_buffer->next_;
    }
    if (command_buffer->next_) {
        command_buffer->next_->previous_ = command_buffer->previous_;
    }
    allocator_.Delete(command_buffer);
}

void CommandPool::Reset(bool release_resources) {
    for (CommandBuffer* command_buffer = first_; command_buffer;
         command_buffer = command_buffer->next_) {
        command_buffer->Reset(release_resources);
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateCommandPool(VkDevice device_handle,
                    const VkCommandPoolCreateInfo* info,
                    const VkAllocationCallbacks* callbacks,
                    VkCommandPool* handle) {
    auto& device = *FromHandle<Device>(device_handle);
    auto* pool = NewObject<CommandPool>(
        device, callbacks, 0, Allocator(callbacks, device.allocator()), info->queueFamilyIndex);
    if (!pool) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    *handle = ToHandle(pool);
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkDestroyCommandPool(VkDevice device, VkCommandPool pool, const VkAllocationCallbacks* callbacks) {
    DestroyObject<CommandPool>(device, callbacks, pool);
}

FORNAX_ENTRY_POINT(VkResult)
vkResetCommandPool(VkDevice, VkCommandPool pool, VkCommandPoolResetFlags flags) {
    FromHandle<CommandPool>(pool)->Reset(flags & VK_COMMAND_POOL_RESET_RELEASE_RESOURCES_BIT);
    return VK_SUCCESS;
}

// Streams give back what they do not need when they are reset; a pool itself holds nothing.
FORNAX_ENTRY_POINT(void) vkTrimCommandPool(VkDevice, VkCommandPool, VkCommandPoolTrimFlags) {}

FORNAX_ENTRY_POINT(VkResult)
vkAllocateCommandBuffers(VkDevice device,
                         const VkCommandBufferAllocateInfo* info,
                         VkCommandBuffer* handles) {
    auto& pool = *FromHandle<CommandPool>(info->commandPool);
    for (uint32_t i = 0; i < info->commandBufferCount; ++i) {
        CommandBuffer* command_buffer = pool.Allocate(info->level);
        if (!command_buffer) {
            // All or none: "all entries of the pCommandBuffers array are set to NULL".
            for (uint32_t j = 0; j < i; ++j) {
                pool.Free(FromHandle<CommandBuffer>(handles[j]));
            }
            std::fill_n(handles, info->commandBufferCount, VkCommandBuffer(nullptr));
            return FailOutOfHostMemory(*FromHandle<Device>(device));
        }
        handles[i] = ToHandle(command_buffer);
    }
    return VK_SUCCESS;
}

FORNAX_ENTRY_POINT(void)
vkFreeCommandBuffers(VkDevice,
                     VkCommandPool pool_handle,
                     uint32_t count,
                     const VkCommandBuffer* handles) {
    auto& pool = *FromHandle<CommandPool>(pool_handle);
    for (uint32_t i = 0; i < count; ++i) {
        if (handles[i]) {
            pool.Free(FromHandle<CommandBuffer>(handles[i]));
        }
    }
}

}  // namespace fornax::driver
