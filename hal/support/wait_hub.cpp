// Blocking on timelines, and the end of a device.
#include "hal/support/wait_hub.h"

#include <algorithm>

#include "hal/memory.h"
#include "hal/support/host_timeline.h"
#include "hal/support/shared_timeline.h"
#include "hal/support/sync_file.h"

namespace fornax::hal {

namespace {

bool Reached(std::span<const TimelinePoint> points, WaitHub::Mode mode) {
    const auto reached = [](const TimelinePoint& point) { return point.Reached(); };
    if (mode == WaitHub::Mode::kAny && !points.empty()) {
        return std::any_of(points.begin(), points.end(), reached);
    }
    return std::all_of(points.begin(), points.end(), reached);
}

}  // namespace

struct WaitHub::Waiter {
    std::span<const TimelinePoint> points;
    Mode mode;
    const std::atomic<bool>* cancelled;
    std::atomic<uint32_t> woken{0};
    uint64_t woken_ns = 0;  // when, or 0; written before `woken`

    void Wake() {
        woken_ns = MonotonicNanoseconds();
        woken.store(1, std::memory_order_seq_cst);
        FutexWake(woken);
    }

    // Sleeps until woken, or until something happens to a shared timeline among the points, of
    // which `sequences` were read before the values.
    void Sleep(std::span<const FutexWord> sequences, uint64_t timeout_ns) const {
        if (sequences.empty()) {
            FutexWait(woken, 0, timeout_ns);
        } else {
            FutexWaitAny(sequences, timeout_ns);
        }
    }

    bool Cancelled() const {
        return cancelled != nullptr && cancelled->load(std::memory_order_seq_cst);
    }
};

Status WaitHub::status() const {
    if (Forked()) {
        return Error{ErrorCode::kDeviceLost,
                     "The device belongs to the parent process and cannot be used after fork."};
    }
    if (!lost_.load(std::memory_order_acquire)) {
        return OkStatus();
    }
    std::lock_guard lock(mutex_);
    return Error{ErrorCode::kDeviceLost, message_};
}

void WaitHub::Lose(std::string message) {
    if (Forked()) {
        return;
    }
    {
        std::lock_guard lock(mutex_);
        if (lost_.load(std::memory_order_relaxed)) {
            return;
        }
        message_ = std::move(message);
        lost_.store(true, std::memory_order_seq_cst);
        for (Waiter* waiter : waiters_) {
            waiter->Wake();
        }
        waiter_count_.fetch_sub(static_cast<uint32_t>(sync_files_.size()));
        sync_files_.clear();
    }
    // message_ never changes again.
    if (on_lost_) {
        on_lost_(message_);
    }
}

void WaitHub::Describe(FaultReport report) {
    if (Forked()) {
        return;
    }
    std::lock_guard lock(mutex_);
    if (!fault_ && !lost_.load(std::memory_order_relaxed)) {
        fault_ = std::move(report);
    }
}

std::optional<FaultReport> WaitHub::fault() const {
    if (!lost_.load(std::memory_order_acquire) || Forked()) {
        return std::nullopt;
    }
    std::lock_guard lock(mutex_);
    return fault_;
}

Status WaitHub::Wait(std::span<const TimelinePoint> points,
                     Mode mode,
                     uint64_t timeout_ns,
                     const std::atomic<bool>* cancelled) {
    if (Reached(points, mode)) {
        return OkStatus();
    }
    if (lost()) {
        return status();
    }
    const auto timed_out = [] {
        return Error{ErrorCode::kTimeout, "The timeline did not reach the value in time."};
    };
    if (timeout_ns == 0) {
        return timed_out();
    }
    const uint64_t begin_ns = MonotonicNanoseconds();
    const uint64_t deadline_ns =
        timeout_ns < kWaitForever - begin_ns ? begin_ns + timeout_ns : kWaitForever;

    Waiter waiter{points, mode, cancelled};
    if (spin_.Until([&] {
            return Reached(points, mode) || lost_.load(std::memory_order_relaxed) ||
                   waiter.Cancelled();
        }) &&
        Reached(points, mode)) {
        return OkStatus();
    }

    {
        std::lock_guard lock(mutex_);
        waiters_.push_back(&waiter);
        waiter_count_.fetch_add(1, std::memory_order_seq_cst);
    }
    Status result;
    std::vector<FutexWord> words;
    for (;;) {
        waiter.woken.store(0, std::memory_order_seq_cst);
        words.clear();
        for (const TimelinePoint& point : points) {
            if (const SharedTimeline* shared = HostTimeline::SharedPart(*point.timeline)) {
                words.push_back({&shared->sequence(), shared->sequence().load(), true});
            }
        }
        if (!words.empty()) {
            words.push_back({&waiter.woken, 0, false});
        }
        // From here on whoever changes the condition sees this waiter, or its change is seen here.
        if (Reached(points, mode)) {
            break;
        }
        if (lost_.load(std::memory_order_seq_cst)) {
            result = Error{ErrorCode::kDeviceLost, ""};
            break;
        }
        const uint64_t now_ns = MonotonicNanoseconds();
        if (waiter.Cancelled() || now_ns >= deadline_ns) {
            result = timed_out();
            break;
        }
        waiter.Sleep(words, deadline_ns == kWaitForever ? kNoTimeout : deadline_ns - now_ns);
    }
    {
        std::lock_guard lock(mutex_);
        std::erase(waiters_, &waiter);
        waiter_count_.fetch_sub(1, std::memory_order_seq_cst);
    }
    spin_.EventCame(begin_ns, waiter.woken_ns);
    if (!result.ok() && result.error().code == ErrorCode::kDeviceLost) {
        return status();
    }
    return result;
}

void WaitHub::WakeConcerned() {
    if (Forked()) {
        return;
    }
    std::lock_guard lock(mutex_);
    for (Waiter* waiter : waiters_) {
        if (Reached(waiter->points, waiter->mode) || waiter->Cancelled()) {
            waiter->Wake();
        }
    }
    SignalReachedFiles();
}

void WaitHub::SignalWhenReached(const Timeline& timeline, uint64_t value, UniqueFd signal_end) {
    std::lock_guard lock(mutex_);
    if (lost_.load(std::memory_order_relaxed)) {
        return;
    }
    sync_files_.push_back({&timeline, value, std::move(signal_end)});
    waiter_count_.fetch_add(1, std::memory_order_seq_cst);
    // From here on whoever signals sees the file, or the signal is seen here.
    SignalReachedFiles();
}

void WaitHub::ForgetSyncFiles(const Timeline& timeline) {
    if (Forked()) {
        return;
    }
    std::lock_guard lock(mutex_);
    const size_t count = std::erase_if(
        sync_files_, [&](const SyncFile& file) { return file.timeline == &timeline; });
    waiter_count_.fetch_sub(static_cast<uint32_t>(count));
}

void WaitHub::SignalReachedFiles() {
    const size_t count = std::erase_if(sync_files_, [](SyncFile& file) {
        if (file.timeline->value() < file.value) {
            return false;
        }
        SignalSyncPair(file.signal_end);
        return true;
    });
    waiter_count_.fetch_sub(static_cast<uint32_t>(count));
}

}  // namespace fornax::hal
