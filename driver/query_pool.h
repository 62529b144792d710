// Query pool: slots in device memory, for timestamps, occlusion, pipeline statistics or performance
// counters. A query has a slot for each of its counters.
#pragma once

#include <span>

#include <vulkan/vulkan_core.h>

#include "driver/allocator.h"
#include "driver/memory_report.h"
#include "driver/object.h"
#include "hal/command_stream_builder.h"
#include "hal/counters.h"
#include "hal/query.h"

namespace fornax::driver {

class QueryPool : public DeviceObject {
  public:
    using Handle = VkQueryPool;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_QUERY_POOL;

    explicit QueryPool(Device& device) : DeviceObject(device, kObjectType) {}

    // Bytes that Init needs behind the object.
    static size_t TrailingBytes(const VkQueryPoolCreateInfo& info);

    VkResult Init(const VkQueryPoolCreateInfo& info);

    VkQueryType type() const { return type_; }

    uint64_t address(uint32_t query) const {
        return memory_->address() + query * slots_per_query_ * sizeof(hal::QuerySlot);
    }
    std::span<hal::QuerySlot> slots(uint32_t first, uint32_t count) const {
        auto* all = reinterpret_cast<hal::QuerySlot*>(memory_->host_pointer());
        return {all + first * slots_per_query_, count * slots_per_query_};
    }
    uint64_t slots_per_query() const { return slots_per_query_; }
    // What each query counts between its begin and its end, a slot each.
    std::span<const hal::CounterId> counters() const;

    // vkCmdCopyQueryPoolResults.
    void CopyResults(hal::CommandStreamBuilder& builder,
                     uint32_t first,
                     uint32_t count,
                     uint64_t destination,
                     VkDeviceSize stride_bytes,
                     VkQueryResultFlags flags) const;
    // vkGetQueryPoolResults.
    VkResult Results(uint32_t first,
                     uint32_t count,
                     std::byte* data,
                     VkDeviceSize stride_bytes,
                     VkQueryResultFlags flags) const;

  private:
    VkResult TakeCounters(const VkQueryPoolCreateInfo& info);

    VkQueryType type_ = VK_QUERY_TYPE_TIMESTAMP;
    uint64_t slots_per_query_ = 1;
    ObjectMemory memory_{*this};
};

}  // namespace fornax::driver
