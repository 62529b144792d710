// Timelines: an atomic value each; everything that blocks is in the WaitHub.
#include "hal/timeline.h"

#include <fmt/format.h>

#include "hal/shared_file.h"
#include "hal/shared_timeline.h"
#include "hal/sync_file.h"
#include "hal/wait_hub.h"

namespace fornax::hal {

Timeline::Timeline(std::shared_ptr<WaitHub> hub, uint64_t initial_value)
    : hub_(std::move(hub)), own_{initial_value, initial_value}, words_(&own_) {}

Timeline::Timeline(std::shared_ptr<WaitHub> hub, std::shared_ptr<SharedTimeline> shared)
    : hub_(std::move(hub)), shared_(std::move(shared)), own_{}, words_(&shared_->words()) {}

Timeline::~Timeline() {
    if (exported_.load(std::memory_order_relaxed)) {
        hub_->ForgetSyncFiles(*this);
    }
}

void Timeline::Notify() {
    hub_->Notify();
    if (shared_ != nullptr) {
        shared_->Wake();
    }
}

Result<UniqueFd> Timeline::ExportFile() const {
    if (shared_ == nullptr) {
        return Error{ErrorCode::kUnsupported, "The timeline was not made to be shared."};
    }
    return DuplicateFile(shared_->file());
}

Result<UniqueFd> Timeline::ExportSyncFile(uint64_t value) {
    if (shared_ != nullptr) {
        return Error{ErrorCode::kUnsupported,
                     "A timeline that other devices signal has no sync files."};
    }
    FORNAX_ASSIGN_OR_RETURN(SyncPair pair, CreateSyncPair());
    if (this->value() >= value) {
        SignalSyncPair(pair.signal_end);
    } else {
        exported_.store(true, std::memory_order_relaxed);
        hub_->SignalWhenReached(*this, value, std::move(pair.signal_end));
    }
    return std::move(pair.file);
}

Status Timeline::Signal(uint64_t value) {
    if (hub_->Forked()) {
        return hub_->status();
    }
    uint64_t present = words_->value.load(std::memory_order_relaxed);
    do {
        if (value <= present) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("The timeline's new value {} is not greater than its value {}.", value,
                            present)};
        }
    } while (!words_->value.compare_exchange_weak(present, value, std::memory_order_seq_cst,
                                                  std::memory_order_relaxed));
    Notify();
    return OkStatus();
}

void Timeline::Advance(uint64_t value) {
    uint64_t present = words_->value.load(std::memory_order_relaxed);
    while (value > present) {
        if (words_->value.compare_exchange_weak(present, value, std::memory_order_seq_cst,
                                                std::memory_order_relaxed)) {
            Notify();
            return;
        }
    }
}

Status Timeline::Wait(uint64_t value, uint64_t timeout_ns) const {
    if (this->value() >= value) {
        return OkStatus();
    }
    // The point only borrows this timeline: the caller keeps it alive during the wait.
    const TimelinePoint point{
        std::shared_ptr<Timeline>(std::shared_ptr<Timeline>(), const_cast<Timeline*>(this)), value};
    return hub_->Wait({&point, 1}, WaitHub::Mode::kAll, timeout_ns);
}

Status WaitAll(std::span<const TimelinePoint> points, uint64_t timeout_ns) {
    if (points.empty()) {
        return OkStatus();
    }
    return points.front().timeline->hub().Wait(points, WaitHub::Mode::kAll, timeout_ns);
}

Status WaitAny(std::span<const TimelinePoint> points, uint64_t timeout_ns) {
    if (points.empty()) {
        return OkStatus();
    }
    return points.front().timeline->hub().Wait(points, WaitHub::Mode::kAny, timeout_ns);
}

}  // namespace fornax::hal
