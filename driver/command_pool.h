// Command pool: owner of its command buffers' objects.
#pragma once

#include <vulkan/vulkan_core.h>

#include "driver/allocator.h"
#include "driver/object.h"

namespace fornax::driver {

class CommandBuffer;

// Used by one thread at a time ("externally synchronized"), with its command buffers.
class CommandPool : public DeviceObject {
  public:
    using Handle = VkCommandPool;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_COMMAND_POOL;

    CommandPool(Device& device, const Allocator& allocator, uint32_t family)
        : DeviceObject(device, kObjectType), allocator_(allocator), family_(family) {}
    ~CommandPool();

    // Null without memory.
    CommandBuffer* Allocate(VkCommandBufferLevel level);
    void Free(CommandBuffer* command_buffer);
    void Reset(bool release_resources);

    // The queue family that its command buffers are for.
    uint32_t family() const { return family_; }

  private:
    Allocator allocator_;
    uint32_t family_;
    CommandBuffer* first_ = nullptr;
};

}  // namespace fornax::driver
