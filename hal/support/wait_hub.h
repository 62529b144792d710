// WaitHub: what the timelines of one device share: its waiters, and whether the device still lives.
//
// For backends. A signal costs one atomic load more than the store of the value while nobody
// sleeps; sleepers are few (threads that block), so one list under one lock serves the whole
// device.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/per_process.h"
#include "base/result.h"
#include "hal/fault.h"
#include "hal/support/adaptive_spin.h"
#include "hal/timeline.h"

namespace fornax::hal {

// Thread-safe.
class WaitHub {
  public:
    explicit WaitHub(std::function<void(const std::string&)> on_lost)
        : on_lost_(std::move(on_lost)) {}
    WaitHub(const WaitHub&) = delete;
    WaitHub& operator=(const WaitHub&) = delete;

    bool lost() const { return lost_.load(std::memory_order_acquire) || Forked(); }
    Status status() const;
    // The first message counts; wakes every waiter and calls on_lost.
    void Lose(std::string message);

    // What is known of the fault that the device is about to be lost by; the first report counts.
    void Describe(FaultReport report);
    std::optional<FaultReport> fault() const;

    // True from the loss on, for those who may only look (kernel_guard.h).
    const std::atomic<bool>& lost_flag() const { return lost_; }

    // True in a child process of the one that made the hub. There no lock may be taken, because a
    // thread that does not exist there may have held it.
    bool Forked() const { return process_ != ProcessGeneration(); }

    using Mode = WaitMode;
    // Blocks until the points are reached: OK; or kTimeout, kDeviceLost, or, when `cancelled` is
    // not null and becomes true (followed by Notify), kTimeout.
    Status Wait(std::span<const TimelinePoint> points,
                Mode mode,
                uint64_t timeout_ns,
                const std::atomic<bool>* cancelled = nullptr);

    // To be called after a timeline's value or a `cancelled` flag was changed (sequentially
    // consistent): wakes the waiters that it concerns.
    void Notify() {
        if (waiter_count_.load(std::memory_order_seq_cst) != 0) {
            WakeConcerned();
        }
    }

    // For Timeline::ExportSyncFile: signals the file when the timeline reaches `value`, and lets
    // it hang up when the device is lost first, or when the timeline goes (ForgetSyncFiles).
    void SignalWhenReached(const Timeline& timeline, uint64_t value, UniqueFd signal_end);
    void ForgetSyncFiles(const Timeline& timeline);

  private:
    struct Waiter;
    struct SyncFile {
        const Timeline* timeline;
        uint64_t value;
        UniqueFd signal_end;
    };

    void WakeConcerned();
    void SignalReachedFiles();

    std::atomic<bool> lost_{false};
    std::atomic<uint32_t> waiter_count_{0};  // and of sync files
    AdaptiveSpin spin_{1'000, 20'000};
    const uint64_t process_ = ProcessGeneration();

    mutable std::mutex mutex_;
    std::vector<Waiter*> waiters_;
    std::vector<SyncFile> sync_files_;
    std::string message_;
    std::optional<FaultReport> fault_;
    std::function<void(const std::string&)> on_lost_;
};

}  // namespace fornax::hal
