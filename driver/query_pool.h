// Query pool: slots in device memory, for timestamps, occlusion or pipeline statistics.
#pragma once

#include <span>

#include <vulkan/vulkan_core.h>

#include "driver/memory_report.h"
#include "driver/object.h"
#include "hal/query.h"

namespace fornax::driver {

class QueryPool : public DeviceObject {
  public:
    using Handle = VkQueryPool;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_QUERY_POOL;

    explicit QueryPool(Device& device) : DeviceObject(device, kObjectType) {}

    VkResult Init(const VkQueryPoolCreateInfo& info);

    VkQueryType type() const { return type_; }

    uint64_t address(uint32_t query) const {
        return memory_->address() + query * sizeof(hal::QuerySlot);
    }
    std::span<hal::QuerySlot> slots(uint32_t first, uint32_t count) const {
        return {reinterpret_cast<hal::QuerySlot*>(memory_->host_pointer()) + first, count};
    }

    // vkGetQueryPoolResults.
    VkResult Results(uint32_t first,
                     uint32_t count,
                     std::byte* data,
                     VkDeviceSize stride_bytes,
                     VkQueryResultFlags flags) const;

  private:
    VkQueryType type_ = VK_QUERY_TYPE_TIMESTAMP;
    ObjectMemory memory_{*this};
};

}  // namespace fornax::driver
