// Queries: timestamps, the number of invocations of compute shaders, and occlusion queries, which
// count no samples where nothing is drawn.
#include "driver/query_pool.h"

#include <chrono>
#include <thread>

#include "driver/buffer.h"
#include "driver/command_buffer.h"
#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {

namespace {

// The HAL's flags mean what Vulkan's do.
uint8_t ResultFlags(VkQueryResultFlags flags) {
    uint8_t result = 0;
    if (flags & VK_QUERY_RESULT_64_BIT)
        result |= hal::kQuery64Bit;
    if (flags & VK_QUERY_RESULT_WAIT_BIT)
        result |= hal::kQueryWait;
    if (flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT)
        result |= hal::kQueryWithAvailability;
    if (flags & VK_QUERY_RESULT_PARTIAL_BIT)
        result |= hal::kQueryPartial;
    return result;
}

}  // namespace

VkResult QueryPool::Init(const VkQueryPoolCreateInfo& info) {
    switch (info.queryType) {
        case VK_QUERY_TYPE_TIMESTAMP:
        case VK_QUERY_TYPE_OCCLUSION:
            break;
        case VK_QUERY_TYPE_PIPELINE_STATISTICS:
            // A queue without graphics can begin no other (VUID-vkCmdBeginQuery-queryType-00804).
            if (info.pipelineStatistics !=
                VK_QUERY_PIPELINE_STATISTIC_COMPUTE_SHADER_INVOCATIONS_BIT) {
                return Fail(*this, VK_ERROR_FEATURE_NOT_PRESENT,
                            "A query pool was asked for the pipeline statistics {:#x}; without "
                            "graphics there are only the invocations of compute shaders ({:#x}).",
                            info.pipelineStatistics,
                            static_cast<uint32_t>(
                                VK_QUERY_PIPELINE_STATISTIC_COMPUTE_SHADER_INVOCATIONS_BIT));
            }
            break;
        default:
            return Fail(*this, VK_ERROR_FEATURE_NOT_PRESENT,
                        "A query pool of type {} was asked for; Fornax has queries of timestamps, "
                        "occlusion and pipeline statistics only.",
                        static_cast<int>(info.queryType));
    }
    type_ = info.queryType;
    FORNAX_RETURN_IF_FAILED(memory_.Allocate(uint64_t{info.queryCount} * sizeof(hal::QuerySlot)));
    if (info.flags & VK_QUERY_POOL_CREATE_RESET_BIT_KHR)
        hal::ResetQueries(slots(0, info.queryCount));
    return VK_SUCCESS;
}

VkResult QueryPool::Results(uint32_t first,
                            uint32_t count,
                            std::byte* data,
                            VkDeviceSize stride_bytes,
                            VkQueryResultFlags flags) const {
    const std::span<const hal::QuerySlot> wanted = slots(first, count);
    if (flags & VK_QUERY_RESULT_WAIT_BIT) {
        for (const hal::QuerySlot& slot : wanted) {
            while (!hal::QueryAvailable(slot)) {
                FORNAX_RETURN_IF_FAILED(device().CheckLost());
                std::this_thread::sleep_for(std::chrono::microseconds(20));
            }
        }
    }
    const bool all = hal::WriteQueryResults(wanted, data, stride_bytes, ResultFlags(flags));
    // "VK_NOT_READY if any query is unavailable", but for availability results, which say so
    // themselves only together with partial ones.
    return all || (flags & VK_QUERY_RESULT_PARTIAL_BIT) ? VK_SUCCESS : VK_NOT_READY;
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateQueryPool(VkDevice device,
                  const VkQueryPoolCreateInfo* info,
                  const VkAllocationCallbacks* callbacks,
                  VkQueryPool* pool) {
    return CreateObject<QueryPool>(device, callbacks, pool, *info);
}

FORNAX_ENTRY_POINT(void)
vkDestroyQueryPool(VkDevice device, VkQueryPool pool, const VkAllocationCallbacks* callbacks) {
    DestroyObject<QueryPool>(device, callbacks, pool);
}

FORNAX_ENTRY_POINT(VkResult)
vkGetQueryPoolResults(VkDevice device,
                      VkQueryPool pool,
                      uint32_t first,
                      uint32_t count,
                      size_t,
                      void* data,
                      VkDeviceSize stride,
                      VkQueryResultFlags flags) {
    FORNAX_RETURN_IF_FAILED(FromHandle<Device>(device)->CheckLost());
    return FromHandle<QueryPool>(pool)->Results(first, count, static_cast<std::byte*>(data), stride,
                                                flags);
}

FORNAX_ENTRY_POINT(void)
vkResetQueryPool(VkDevice, VkQueryPool pool, uint32_t first, uint32_t count) {
    hal::ResetQueries(FromHandle<QueryPool>(pool)->slots(first, count));
}

FORNAX_ENTRY_POINT(void)
vkCmdResetQueryPool(VkCommandBuffer command_buffer,
                    VkQueryPool pool,
                    uint32_t first,
                    uint32_t count) {
    auto& builder = FromHandle<CommandBuffer>(command_buffer)->builder();
    builder.ResetQueries(FromHandle<QueryPool>(pool)->address(first), count);
}

FORNAX_ENTRY_POINT(void)
vkCmdWriteTimestamp2(VkCommandBuffer command_buffer,
                     VkPipelineStageFlags2,
                     VkQueryPool pool,
                     uint32_t query) {
    auto& builder = FromHandle<CommandBuffer>(command_buffer)->builder();
    builder.Timestamp(FromHandle<QueryPool>(pool)->address(query));
}

FORNAX_ENTRY_POINT(void)
vkCmdWriteTimestamp(VkCommandBuffer command_buffer,
                    VkPipelineStageFlagBits stage,
                    VkQueryPool pool,
                    uint32_t query) {
    vkCmdWriteTimestamp2(command_buffer, stage, pool, query);
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyQueryPoolResults(VkCommandBuffer command_buffer,
                          VkQueryPool pool,
                          uint32_t first,
                          uint32_t count,
                          VkBuffer buffer,
                          VkDeviceSize offset,
                          VkDeviceSize stride,
                          VkQueryResultFlags flags) {
    auto& builder = FromHandle<CommandBuffer>(command_buffer)->builder();
    builder.CopyQueries(FromHandle<QueryPool>(pool)->address(first), count,
                        FromHandle<Buffer>(buffer)->address() + offset, stride, ResultFlags(flags));
}

FORNAX_ENTRY_POINT(void)
vkCmdCopyQueryPoolResultsToMemoryKHR(VkCommandBuffer command_buffer,
                                     VkQueryPool pool,
                                     uint32_t first,
                                     uint32_t count,
                                     const VkStridedDeviceAddressRangeKHR* destination,
                                     VkAddressCommandFlagsKHR,
                                     VkQueryResultFlags flags) {
    auto& builder = FromHandle<CommandBuffer>(command_buffer)->builder();
    builder.CopyQueries(FromHandle<QueryPool>(pool)->address(first), count, destination->address,
                        destination->stride, ResultFlags(flags));
}

// Timestamps are written, not begun and ended. An occlusion query counts the samples that pass
// tests between the two, which are 0: only its end does something.
FORNAX_ENTRY_POINT(void)
vkCmdBeginQuery(VkCommandBuffer handle, VkQueryPool pool, uint32_t query, VkQueryControlFlags) {
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    const auto& queries = *FromHandle<QueryPool>(pool);
    switch (queries.type()) {
        case VK_QUERY_TYPE_OCCLUSION:
            break;
        case VK_QUERY_TYPE_PIPELINE_STATISTICS:
            command_buffer.builder().BeginCount(queries.address(query));
            break;
        default:
            command_buffer.Error(Fail(command_buffer, VK_ERROR_VALIDATION_FAILED_EXT,
                                      "vkCmdBeginQuery was recorded with a pool of timestamps."));
    }
}

FORNAX_ENTRY_POINT(void) vkCmdEndQuery(VkCommandBuffer handle, VkQueryPool pool, uint32_t query) {
    auto& command_buffer = *FromHandle<CommandBuffer>(handle);
    const auto& queries = *FromHandle<QueryPool>(pool);
    auto& builder = command_buffer.builder();
    switch (queries.type()) {
        case VK_QUERY_TYPE_OCCLUSION: {
            // Between the barriers no other command sees half of the slot.
            static constexpr hal::QuerySlot kNoSamples{.value = 0, .available = 1};
            builder.Barrier();
            builder.Update(queries.address(query), std::as_bytes(std::span(&kNoSamples, 1)));
            builder.Barrier();
            break;
        }
        case VK_QUERY_TYPE_PIPELINE_STATISTICS:
            builder.EndCount(queries.address(query));
            break;
        default:
            command_buffer.Error(Fail(command_buffer, VK_ERROR_VALIDATION_FAILED_EXT,
                                      "vkCmdEndQuery was recorded with a pool of timestamps."));
    }
}

}  // namespace fornax::driver
