// Fences.
#include "driver/fence.h"

#include "driver/chain.h"
#include "driver/device.h"
#include "driver/entry_point.h"

namespace fornax::driver {

namespace {

// Programs pause between polls, which takes a microsecond and more on virtual machines.
constexpr uint32_t kFreePolls = 16;
// Long beside a thread's switch, short beside what is worth polling for. A signal ends the wait.
constexpr uint64_t kPollPauseNs = 250'000;

}  // namespace

VkResult Fence::Init(const VkFenceCreateInfo& info) {
    const auto* exported = FindInChain<VkExportFenceCreateInfo>(
        info.pNext, VK_STRUCTURE_TYPE_EXPORT_FENCE_CREATE_INFO);
    FORNAX_RETURN_IF_FAILED(payload_.Init(*this, 0, VK_EXTERNAL_FENCE_HANDLE_TYPE_OPAQUE_FD_BIT,
                                          exported ? exported->handleTypes : 0));
    if (!(info.flags & VK_FENCE_CREATE_SIGNALED_BIT)) {
        payload_.Unset();
    }
    return VK_SUCCESS;
}

void Fence::PauseBetweenPolls() {
    if (polls_.load(std::memory_order_relaxed) < kFreePolls) {
        polls_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const hal::TimelinePoint at = point();
    // A time-out, and a lost device, are seen by the next look.
    (void)at.timeline->Wait(at.value, kPollPauseNs);
}

FORNAX_ENTRY_POINT(VkResult)
vkCreateFence(VkDevice device,
              const VkFenceCreateInfo* info,
              const VkAllocationCallbacks* callbacks,
              VkFence* fence) {
    return CreateObject<Fence>(device, callbacks, fence, *info);
}

FORNAX_ENTRY_POINT(void)
vkDestroyFence(VkDevice device, VkFence fence, const VkAllocationCallbacks* callbacks) {
    DestroyObject<Fence>(device, callbacks, fence);
}

FORNAX_ENTRY_POINT(VkResult)
vkResetFences(VkDevice, uint32_t count, const VkFence* fences) {
    for (uint32_t i = 0; i < count; ++i) {
        FromHandle<Fence>(fences[i])->Reset();
    }
    return VK_SUCCESS;
}

// Applications poll this: at first two atomic loads.
FORNAX_ENTRY_POINT(VkResult) vkGetFenceStatus(VkDevice device, VkFence handle) {
    auto& fence = *FromHandle<Fence>(handle);
    if (!fence.signalled()) {
        fence.PauseBetweenPolls();
    }
    if (fence.signalled()) {
        FromHandle<Device>(device)->PrintMessages();
        return VK_SUCCESS;
    }
    FORNAX_RETURN_IF_FAILED(FromHandle<Device>(device)->CheckLost());
    return VK_NOT_READY;
}

FORNAX_ENTRY_POINT(VkResult)
vkWaitForFences(VkDevice device_handle,
                uint32_t count,
                const VkFence* fences,
                VkBool32 wait_all,
                uint64_t timeout_ns) {
    auto& device = *FromHandle<Device>(device_handle);
    if (count == 1) {
        const hal::TimelinePoint point = FromHandle<Fence>(fences[0])->point();
        const Status status = point.timeline->Wait(point.value, timeout_ns);
        device.PrintMessages();
        return WaitResult(device, status);
    }
    HostArray<hal::TimelinePoint> points(device.allocator(), count);
    if (!points.Has(count)) {
        return FailOutOfHostMemory(device);
    }
    for (uint32_t i = 0; i < count; ++i) {
        points[i] = FromHandle<Fence>(fences[i])->point();
    }
    const std::span<const hal::TimelinePoint> all(points.data(), count);
    const Status status = wait_all ? hal::WaitAll(all, timeout_ns) : hal::WaitAny(all, timeout_ns);
    device.PrintMessages();
    return WaitResult(device, status);
}

}  // namespace fornax::driver
