#include "hal/support/host_timeline.h"

#include <fmt/format.h>

#include "hal/support/shared_file.h"
#include "hal/support/shared_timeline.h"
#include "hal/support/sync_file.h"
#include "hal/support/wait_hub.h"

namespace fornax::hal {

HostTimeline::HostTimeline(std::shared_ptr<WaitHub> hub, uint64_t initial_value)
    : Timeline(&own_), hub_(std::move(hub)), own_{initial_value, initial_value} {}

HostTimeline::HostTimeline(std::shared_ptr<WaitHub> hub, std::shared_ptr<SharedTimeline> shared)
    : Timeline(&shared->words()), hub_(std::move(hub)), shared_(std::move(shared)), own_{} {}

HostTimeline::~HostTimeline() {
    if (exported_.load(std::memory_order_relaxed)) {
        hub_->ForgetSyncFiles(*this);
    }
}

void HostTimeline::Notify() {
    hub_->Notify();
    if (shared_ != nullptr) {
        shared_->Wake();
    }
}

Result<UniqueFd> HostTimeline::ExportFile() const {
    if (shared_ == nullptr) {
        return Error{ErrorCode::kUnsupported, "The timeline was not made to be shared."};
    }
    return DuplicateFile(shared_->file());
}

Result<UniqueFd> HostTimeline::ExportSyncFile(uint64_t value) {
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

Status HostTimeline::Signal(uint64_t value) {
    if (hub_->Forked()) {
        return hub_->status();
    }
    uint64_t present = words().value.load(std::memory_order_relaxed);
    do {
        if (value <= present) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("The timeline's new value {} is not greater than its value {}.", value,
                            present)};
        }
    } while (!words().value.compare_exchange_weak(present, value, std::memory_order_seq_cst,
                                                  std::memory_order_relaxed));
    Notify();
    return OkStatus();
}

void HostTimeline::Advance(uint64_t value) {
    uint64_t present = words().value.load(std::memory_order_relaxed);
    while (value > present) {
        if (words().value.compare_exchange_weak(present, value, std::memory_order_seq_cst,
                                                std::memory_order_relaxed)) {
            Notify();
            return;
        }
    }
}

Status HostTimeline::WaitFor(std::span<const TimelinePoint> points,
                             WaitMode mode,
                             uint64_t timeout_ns) const {
    return hub_->Wait(points, mode, timeout_ns);
}

bool HostTimeline::BelongsTo(const Timeline* timeline, const WaitHub& hub) {
    const auto* host = dynamic_cast<const HostTimeline*>(timeline);
    return host != nullptr && host->hub_.get() == &hub;
}

const SharedTimeline* HostTimeline::SharedPart(const Timeline& timeline) {
    const auto* host = dynamic_cast<const HostTimeline*>(&timeline);
    return host != nullptr ? host->shared_.get() : nullptr;
}

}  // namespace fornax::hal
