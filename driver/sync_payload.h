// SyncPayload: what fences and binary semaphores are made of: a timeline used as a flag, and
// perhaps one that was imported for a single use ("Importing Semaphore Payloads", "Importing Fence
// Payloads").
//
// The flag's state lies in the timeline, beside its value, so that everybody whom a payload was
// exported to by reference sees the same: it is set once the value has reached the target.
#pragma once

#include <memory>
#include <utility>

#include <vulkan/vulkan_core.h>

#include "base/file.h"
#include "base/result.h"
#include "driver/object.h"
#include "hal/timeline.h"

namespace fornax::driver {

class SyncPayload {
  public:
    // A payload that starts at `initial_value`, for `origin`'s device; with the handle types that
    // it may be exported to.
    VkResult Init(const DeviceObject& origin,
                  uint64_t initial_value,
                  VkFlags opaque_bit,
                  VkFlags export_types);

    hal::Timeline& timeline() const { return *Current(); }
    const std::shared_ptr<hal::Timeline>& shared_timeline() const { return Current(); }

    // The flag's present target, reached or not.
    hal::TimelinePoint Point() const { return {Current(), Current()->target().load()}; }
    bool IsSet() const { return Current()->value() >= Current()->target().load(); }
    // The next point that nobody has been promised yet.
    hal::TimelinePoint NextPoint() const { return {Current(), ++Current()->target()}; }
    // Unset if set; what is on its way to being set stays so.
    void Unset() const {
        if (IsSet()) {
            Current()->target().store(Current()->value() + 1);
        }
    }

    void Import(std::shared_ptr<hal::Timeline> payload, bool temporary) {
        (temporary ? temporary_ : permanent_) = std::move(payload);
    }
    // Back from a temporary payload, if there is one.
    bool Restore() { return std::exchange(temporary_, nullptr) != nullptr; }

  private:
    const std::shared_ptr<hal::Timeline>& Current() const {
        return temporary_ ? temporary_ : permanent_;
    }

    std::shared_ptr<hal::Timeline> permanent_;
    std::shared_ptr<hal::Timeline> temporary_;
};

// The payload behind a file descriptor, which becomes the driver's on success: a sync file (-1 is
// one that has been signalled), else a shared timeline. VK_ERROR_INVALID_EXTERNAL_HANDLE for
// what is neither.
VkResult OpenPayload(const DeviceObject& origin,
                     bool sync_file,
                     int file,
                     std::shared_ptr<hal::Timeline>& payload);

// Hands a file of the HAL to the application.
VkResult GiveFile(const DeviceObject& origin, Result<UniqueFd> file, int* out);

}  // namespace fornax::driver
