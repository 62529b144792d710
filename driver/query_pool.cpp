// Queries: timestamps, the number of invocations of compute shaders, performance counters, and
// occlusion queries, which count no samples where nothing is drawn.
#include "driver/query_pool.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "driver/buffer.h"
#include "driver/chain.h"
#include "driver/command_buffer.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/performance_query.h"

namespace fornax::driver {

namespace {

// The HAL's flags mean what Vulkan's do. The device wraps what 32 bits do not hold: the result "may
// either wrap or saturate" (Query Operation).
uint8_t ResultFlags(VkQueryResultFlags flags) {
    uint8_t result = 0;
    if (flags & VK_QUERY_RESULT_64_BIT) {
        result |= hal::kQuery64Bit;
    }
    if (flags & VK_QUERY_RESULT_WAIT_BIT) {
        result |= hal::kQueryWait;
    }
    if (flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT) {
        result |= hal::kQueryWithAvailability;
    }
    if (flags & VK_QUERY_RESULT_PARTIAL_BIT) {
        result |= hal::kQueryPartial;
    }
    return result;
}

constexpr hal::CounterId kStatistics[] = {hal::CounterId::kInvocations};

// Results of performance queries are arrays of VkPerformanceCounterResultKHR, whatever the flags
// say.
static_assert(sizeof(VkPerformanceCounterResultKHR) == sizeof(uint64_t));
constexpr uint8_t kCounterResultFlags = hal::kQuery64Bit;

std::span<const uint32_t> CounterIndices(const VkQueryPoolCreateInfo& info) {
    if (info.queryType != VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR) {
        return {};
    }
    const auto* counters = FindInChain<VkQueryPoolPerformanceCreateInfoKHR>(
        info.pNext, VK_STRUCTURE_TYPE_QUERY_POOL_PERFORMANCE_CREATE_INFO_KHR);
    if (!counters) {
        return {};
    }
    return {counters->pCounterIndices, counters->counterIndexCount};
}

}  // namespace

size_t QueryPool::TrailingBytes(const VkQueryPoolCreateInfo& info) {
    return CounterIndices(info).size() * sizeof(hal::CounterId);
}

std::span<const hal::CounterId> QueryPool::counters() const {
    if (type_ == VK_QUERY_TYPE_PIPELINE_STATISTICS) {
        return kStatistics;
    }
    return TrailingOf<const hal::CounterId>(this, slots_per_query_);
}

// The driver's counters are the device's and its observer's, in the same order.
VkResult QueryPool::TakeCounters(const VkQueryPoolCreateInfo& info) {
    const std::span<const uint32_t> indices = CounterIndices(info);
    if (indices.empty()) {
        return Fail(*this, VK_ERROR_VALIDATION_FAILED_EXT,
                    "A pool of performance queries was asked for without any counters "
                    "(VUID-VkQueryPoolCreateInfo-queryType-03222).");
    }
    slots_per_query_ = indices.size();
    const std::span<hal::CounterId> counters = TrailingOf<hal::CounterId>(this, indices.size());
    const uint32_t all = CounterCount(device().physical_device());
    for (size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] >= all) {
            return Fail(*this, VK_ERROR_VALIDATION_FAILED_EXT,
                        "A performance query was asked for the counter {} of {} "
                        "(VUID-VkQueryPoolPerformanceCreateInfoKHR-pCounterIndices-03321).",
                        indices[i], all);
        }
        counters[i] = static_cast<hal::CounterId>(indices[i]);
    }
    return VK_SUCCESS;
}

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
        case VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR:
            FORNAX_RETURN_IF_FAILED(TakeCounters(info));
            break;
        default:
            return Fail(*this, VK_ERROR_FEATURE_NOT_PRESENT,
                        "A query pool of type {} was asked for; Fornax has queries of timestamps, "
                        "occlusion, pipeline statistics and performance counters only.",
                        static_cast<int>(info.queryType));
    }
    type_ = info.queryType;
    FORNAX_RETURN_IF_FAILED(
        memory_.Allocate(info.queryCount * slots_per_query_ * sizeof(hal::QuerySlot)));
    if (info.flags & VK_QUERY_POOL_CREATE_RESET_BIT_KHR) {
        hal::ResetQueries(slots(0, info.queryCount));
    }
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
    if (type_ == VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR) {
        bool all = true;
        for (uint32_t i = 0; i < count; ++i, data += stride_bytes) {
            const std::span<const hal::QuerySlot> query = slots(first + i, 1);
            const bool available = std::ranges::all_of(query, hal::QueryAvailable);
            if (available) {
                hal::WriteQueryResults(query, data, sizeof(uint64_t), kCounterResultFlags);
            }
            all = all && available;
        }
        return all ? VK_SUCCESS : VK_NOT_READY;
    }
    const bool all = hal::WriteQueryResults(wanted, data, stride_bytes, ResultFlags(flags));
    // "VK_NOT_READY if any query is unavailable", but for availability results, which say so
    // themselves only together with partial ones.
    return all || (flags & VK_QUERY_RESULT_PARTIAL_BIT) ? VK_SUCCESS : VK_NOT_READY;
}

void QueryPool::CopyResults(hal::CommandStreamBuilder& builder,
                            uint32_t first,
                            uint32_t count,
                            uint64_t destination,
                            VkDeviceSize stride_bytes,
                            VkQueryResultFlags flags) const {
    if (type_ != VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR) {
        builder.CopyQueries(address(first), count, destination, stride_bytes, ResultFlags(flags));
        return;
    }
    const uint8_t waits = ResultFlags(flags) & hal::kQueryWait;
    for (uint32_t i = 0; i < count; ++i) {
        builder.CopyQueries(address(first + i), static_cast<uint32_t>(slots_per_query_),
                            destination + i * stride_bytes, sizeof(uint64_t),
                            kCounterResultFlags | waits);
    }
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateQueryPool(VkDevice device_handle,
                  const VkQueryPoolCreateInfo* info,
                  const VkAllocationCallbacks* callbacks,
                  VkQueryPool* handle) {
    auto& device = *FromHandle<Device>(device_handle);
    Owned pool(Allocator(callbacks, device.allocator()),
               NewObject<QueryPool>(device, callbacks, QueryPool::TrailingBytes(*info)));
    if (!pool) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    FORNAX_RETURN_IF_FAILED(pool->Init(*info));
    *handle = ToHandle(pool.Release());
    return VK_SUCCESS;
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
    const auto& queries = *FromHandle<QueryPool>(pool);
    builder.ResetQueries(queries.address(first),
                         static_cast<uint32_t>(count * queries.slots_per_query()));
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
    FromHandle<QueryPool>(pool)->CopyResults(
        builder, first, count, FromHandle<Buffer>(buffer)->address() + offset, stride, flags);
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
    FromHandle<QueryPool>(pool)->CopyResults(builder, first, count, destination->address,
                                             destination->stride, flags);
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
        case VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR:
            command_buffer.builder().BeginCounts(queries.address(query), queries.counters());
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
        case VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR:
            builder.EndCounts(queries.address(query), queries.counters());
            break;
        default:
            command_buffer.Error(Fail(command_buffer, VK_ERROR_VALIDATION_FAILED_EXT,
                                      "vkCmdEndQuery was recorded with a pool of timestamps."));
    }
}

}  // namespace fornax::driver
