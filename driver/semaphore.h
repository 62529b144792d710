// Semaphore: a timeline, or a binary semaphore, which is a timeline that every signal raises by
// one.
//
// A binary semaphore's wait is submitted after the signal that it waits for
// (VUID-vkQueueSubmit2-semaphore-03873), so it waits for the last value that was submitted.
#pragma once

#include <atomic>
#include <memory>

#include <vulkan/vulkan_core.h>

#include "driver/object.h"
#include "hal/timeline.h"

namespace fornax::driver {

class Semaphore : public DeviceObject {
  public:
    using Handle = VkSemaphore;
    static constexpr VkObjectType kObjectType = VK_OBJECT_TYPE_SEMAPHORE;

    explicit Semaphore(Device& device) : DeviceObject(device, kObjectType) {}

    VkResult Init(const VkSemaphoreCreateInfo& info);

    hal::Timeline& timeline() const { return *timeline_; }

    // What a submission that waits for `value` (ignored for binary semaphores) waits for, and what
    // one that signals it reaches.
    hal::TimelinePoint WaitPoint(uint64_t value) const {
        return {timeline_, binary_ ? submitted_.load(std::memory_order_acquire) : value};
    }
    hal::TimelinePoint SignalPoint(uint64_t value) {
        return {timeline_,
                binary_ ? submitted_.fetch_add(1, std::memory_order_acq_rel) + 1 : value};
    }

  private:
    std::shared_ptr<hal::Timeline> timeline_;
    bool binary_ = true;
    std::atomic<uint64_t> submitted_ = 0;
};

}  // namespace fornax::driver
