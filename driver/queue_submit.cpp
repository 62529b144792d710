// Submission: batches become HAL submissions, one each; a fence is one more timeline to signal.
#include <vector>

#include "driver/chain.h"
#include "driver/command_buffer.h"
#include "driver/device.h"
#include "driver/entry_point.h"
#include "driver/fence.h"
#include "driver/queue.h"
#include "driver/semaphore.h"

namespace fornax::driver {

namespace {

// One batch in the HAL's terms. Reused for all batches of a call.
struct Batch {
    std::vector<hal::TimelinePoint> waits;
    std::vector<std::shared_ptr<const hal::CommandStream>> streams;
    std::vector<hal::TimelinePoint> signals;

    void Clear() {
        waits.clear();
        streams.clear();
        signals.clear();
    }

    // False for a command buffer that has no finished recording.
    bool Add(VkCommandBuffer handle) {
        streams.push_back(FromHandle<CommandBuffer>(handle)->stream());
        return streams.back() != nullptr;
    }
};

VkResult FailUnrecorded(const Queue& queue) {
    // VUID-vkQueueSubmit-pCommandBuffers-00070: pending or executable.
    return Fail(queue, VK_ERROR_VALIDATION_FAILED_EXT,
                "A command buffer was submitted whose recording had not ended successfully.");
}

// `fill(batch, i)` makes batch i or returns why it cannot.
template <typename Fill>
VkResult Submit(Queue& queue, uint32_t count, VkFence fence_handle, Fill&& fill) {
    Batch batch;
    const auto* fence = FromHandle<Fence>(fence_handle);
    // Without batches, a fence still waits for everything before it.
    const uint32_t submissions = count == 0 && fence ? 1 : count;
    for (uint32_t i = 0; i < submissions; ++i) {
        batch.Clear();
        if (i < count) {
            FORNAX_RETURN_IF_FAILED(fill(batch, i));
        }
        if (fence && i + 1 == submissions) {
            batch.signals.push_back(fence->point());
        }
        const Status status = queue.hal().Submit({batch.waits, batch.streams, batch.signals});
        if (!status) {
            return Fail(queue, status.error());
        }
    }
    return VK_SUCCESS;
}

}  // namespace

FORNAX_ENTRY_POINT(VkResult)
vkQueueSubmit2(VkQueue queue_handle, uint32_t count, const VkSubmitInfo2* submits, VkFence fence) {
    auto& queue = *FromHandle<Queue>(queue_handle);
    return Submit(queue, count, fence, [&](Batch& batch, uint32_t index) {
        const VkSubmitInfo2& submit = submits[index];
        for (uint32_t i = 0; i < submit.waitSemaphoreInfoCount; ++i) {
            const VkSemaphoreSubmitInfo& wait = submit.pWaitSemaphoreInfos[i];
            batch.waits.push_back(FromHandle<Semaphore>(wait.semaphore)->WaitPoint(wait.value));
        }
        for (uint32_t i = 0; i < submit.commandBufferInfoCount; ++i) {
            if (!batch.Add(submit.pCommandBufferInfos[i].commandBuffer)) {
                return FailUnrecorded(queue);
            }
        }
        for (uint32_t i = 0; i < submit.signalSemaphoreInfoCount; ++i) {
            const VkSemaphoreSubmitInfo& signal = submit.pSignalSemaphoreInfos[i];
            batch.signals.push_back(
                FromHandle<Semaphore>(signal.semaphore)->SignalPoint(signal.value));
        }
        return VK_SUCCESS;
    });
}

FORNAX_ENTRY_POINT(VkResult)
vkQueueSubmit(VkQueue queue_handle, uint32_t count, const VkSubmitInfo* submits, VkFence fence) {
    auto& queue = *FromHandle<Queue>(queue_handle);
    return Submit(queue, count, fence, [&](Batch& batch, uint32_t index) {
        const VkSubmitInfo& submit = submits[index];
        const auto* values = FindInChain<VkTimelineSemaphoreSubmitInfo>(
            submit.pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
        for (uint32_t i = 0; i < submit.waitSemaphoreCount; ++i) {
            const bool given = values && i < values->waitSemaphoreValueCount;
            batch.waits.push_back(FromHandle<Semaphore>(submit.pWaitSemaphores[i])
                                      ->WaitPoint(given ? values->pWaitSemaphoreValues[i] : 0));
        }
        for (uint32_t i = 0; i < submit.commandBufferCount; ++i) {
            if (!batch.Add(submit.pCommandBuffers[i])) {
                return FailUnrecorded(queue);
            }
        }
        for (uint32_t i = 0; i < submit.signalSemaphoreCount; ++i) {
            const bool given = values && i < values->signalSemaphoreValueCount;
            batch.signals.push_back(
                FromHandle<Semaphore>(submit.pSignalSemaphores[i])
                    ->SignalPoint(given ? values->pSignalSemaphoreValues[i] : 0));
        }
        return VK_SUCCESS;
    });
}

}  // namespace fornax::driver
