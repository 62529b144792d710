// Scheduling of workgroups over the workers.
#include "hal/model/worker_pool.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "hal/device.h"
#include "hal/model/float_mode.h"
#include "hal/support/guard_pages.h"

namespace fornax::hal::model {

namespace {

// A grid that the command processor can finish alone in this time is not worth another thread: a
// spinning worker needs a few hundred nanoseconds to join, a sleeping one several microseconds.
constexpr uint64_t kPublishNs = 2'000;
// Each woken worker should find at least this much to do.
constexpr uint64_t kWakeWorthNs = 4'000;
// Chunks are 1/kChunkDivisor of an equal share of what is left.
constexpr uint64_t kChunkDivisor = 4;
// A call of a kernel takes some ten nanoseconds before its first workgroup.
constexpr uint64_t kLeastChunkNs = 500;
// Whether the device is lost is looked at between calls: a grid may have 2^63 workgroups, and a
// device that is destroyed must not wait for all of them.
constexpr uint64_t kMostCallNs = 10'000'000;
constexpr uint64_t kFirstCall = 64;  // workgroups of a kernel of which no cost is known

constexpr uint64_t kSharedPageBytes =
    RoundUp(kMaxSharedBytes + 2 * kSharedMemoryMargin, kMemoryPageBytes);

uint64_t Saturate(uint64_t value, uint64_t limit) {
    return value < limit ? value : limit;
}

// How many workgroups the next call may run when `most` of them took so long.
uint64_t NextMost(uint64_t most, uint64_t elapsed_ns) {
    constexpr uint64_t kLimit = uint64_t{1} << 62;
    if (elapsed_ns < kMostCallNs / 2) {
        return std::min(most * 2, kLimit);
    }
    return elapsed_ns > kMostCallNs * 2 ? std::max<uint64_t>(1, most / 2) : most;
}

// A moving average that follows a new behaviour within a few dispatches.
void UpdateCost(std::atomic<uint32_t>* cost, uint64_t elapsed_ns, uint64_t workgroups) {
    if (cost == nullptr || workgroups == 0) {
        return;
    }
    // At least 1, because 0 means that nothing is known.
    const uint64_t measured = std::max<uint64_t>(1, Saturate(elapsed_ns / workgroups, UINT32_MAX));
    const uint64_t previous = cost->load(std::memory_order_relaxed);
    const uint64_t next = previous == 0 ? measured : (previous + measured + 1) / 2;
    cost->store(static_cast<uint32_t>(next), std::memory_order_relaxed);
}

}  // namespace

Worker::~Worker() {
    if (shared_pages_ != nullptr) {
        UnmapBetweenGuards(shared_pages_, kSharedPageBytes);
    }
    if (frame_.scratch != nullptr) {
        munmap(frame_.scratch, scratch_bytes_);
    }
}

Status Worker::Prepare(uint32_t scratch_bytes, uint32_t region_counters) {
    if (region_counters > region_counts_.size()) {
        region_counts_.resize(region_counters);
        frame_.region_counts = region_counts_.data();
    }
    if (frame_.shared_memory == nullptr) {
        shared_pages_ = MapBetweenGuards(kSharedPageBytes);
        if (shared_pages_ == nullptr) {
            return Error{ErrorCode::kOutOfDeviceMemory,
                         fmt::format("The host has no {} bytes for the shared memory of worker {}.",
                                     kSharedPageBytes, frame_.worker_index)};
        }
        frame_.shared_memory = shared_pages_ + kSharedMemoryMargin;
    }
    if (scratch_bytes <= scratch_bytes_) {
        return OkStatus();
    }
    uint64_t grown_bytes = std::max<uint64_t>(scratch_bytes_, kMemoryPageBytes);
    while (grown_bytes < scratch_bytes) {
        grown_bytes *= 2;
    }
    void* grown = mmap(nullptr, grown_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (grown == MAP_FAILED) {
        return Error{ErrorCode::kOutOfDeviceMemory,
                     fmt::format("The host has no {} bytes for the scratch memory of worker {}.",
                                 grown_bytes, frame_.worker_index)};
    }
    if (frame_.scratch != nullptr) {
        munmap(frame_.scratch, scratch_bytes_);
    }
    frame_.scratch = grown;
    scratch_bytes_ = grown_bytes;
    return OkStatus();
}

WorkerPool::WorkerPool(uint32_t worker_count, std::shared_ptr<WaitHub> hub, uint64_t watchdog_ms)
    : worker_count_(std::max(worker_count, 1u)),
      watchdog_ms_(watchdog_ms),
      hub_(std::move(hub)),
      ranges_(std::make_unique<Range[]>(worker_count_)) {}

WorkerPool::~WorkerPool() {
    if (hub_->Forked()) {
        // The threads exist in the parent only; there is nothing to join, and what they were
        // working on must stay as it was.
        for (std::thread& thread : threads_) {
            new std::thread(std::move(thread));
        }
        for (std::unique_ptr<Worker>& worker : workers_) {
            (void)worker.release();
        }
        return;
    }
    Stop();
}

void WorkerPool::Stop() {
    stop_.store(true, std::memory_order_seq_cst);
    doorbell_.fetch_add(1, std::memory_order_seq_cst);
    FutexWake(doorbell_);
    for (std::thread& thread : threads_) {
        thread.join();
    }
    threads_.clear();
}

Status WorkerPool::StartThreads() {
    threads_started_ = true;
    // Signals belong to the application's threads.
    sigset_t all;
    sigset_t previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    Status status;
    try {
        threads_.reserve(worker_count_ - 1);
        workers_.reserve(worker_count_ - 1);
        for (uint32_t index = 1; index < worker_count_ && status.ok(); ++index) {
            workers_.push_back(std::make_unique<Worker>(index, &hub_->lost_flag()));
            Worker& worker = *workers_.back();
            status = worker.Prepare(0, 0);
            if (status.ok()) {
                threads_.emplace_back([this, &worker] { ThreadMain(worker); });
            }
        }
    } catch (const std::exception&) {
        // The system gives no more threads or memory for them: fewer workers do the same work.
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    return status;
}

Result<GridResult> WorkerPool::Run(Worker& self, const Grid& grid) {
    if (!self.IsPrepared(grid.scratch_bytes, grid.region_counters)) [[unlikely]] {
        FORNAX_RETURN_IF_ERROR(self.Prepare(grid.scratch_bytes, grid.region_counters));
    }
    if (grid.region_counters != 0) {
        std::fill_n(self.frame().region_counts, grid.region_counters, 0);
    }
    GridResult result;
    const uint64_t count = grid.workgroup_count;
    self.frame().fault = 0;
    if (worker_count_ == 1 || count == 1) {
        RunAlone(self, grid, 0, count, result);
        return result;
    }

    // Alone, in growing steps, until the grid is finished or has proved worth the other workers.
    const uint64_t cost_ns =
        grid.workgroup_cost_ns ? grid.workgroup_cost_ns->load(std::memory_order_relaxed) : 0;
    uint64_t first = 0;
    if (cost_ns == 0 || count <= kPublishNs / cost_ns) {
        const uint64_t begin_ns = MonotonicNanoseconds();
        uint64_t chunk = cost_ns == 0 ? 1 : (count + 1) / 2;  // half first, in case it got slower
        uint64_t elapsed_ns = 0;
        while (first < count && elapsed_ns < kPublishNs) {
            const uint64_t step = std::min(chunk, count - first);
            if (!RunAlone(self, grid, first, step, result)) {
                return result;
            }
            first += step;
            chunk *= 2;
            elapsed_ns = MonotonicNanoseconds() - begin_ns;
        }
        UpdateCost(grid.workgroup_cost_ns, elapsed_ns, first);
        if (first == count) {
            return result;
        }
    }

    if (!owner_.try_lock()) {
        // Another queue has the threads.
        RunAlone(self, grid, first, count - first, result);
        return result;
    }
    std::lock_guard lock(owner_, std::adopt_lock);
    FORNAX_RETURN_IF_ERROR(RunPublished(self, grid, first, result));
    return result;
}

// False after a fault, or when the device is lost.
bool WorkerPool::RunAlone(Worker& self,
                          const Grid& grid,
                          uint64_t first,
                          uint64_t count,
                          GridResult& result) {
    const uint64_t cost_ns =
        grid.workgroup_cost_ns ? grid.workgroup_cost_ns->load(std::memory_order_relaxed) : 0;
    uint64_t most = cost_ns == 0 ? kFirstCall : std::max<uint64_t>(1, kMostCallNs / cost_ns);
    for (;;) {
        const uint64_t step = std::min(most, count);
        const uint64_t begin_ns = step == count ? 0 : MonotonicNanoseconds();
        self.guard().Call({.entry = grid.entry,
                           .dispatch = grid.frame,
                           .first_workgroup = first,
                           .count = step,
                           .interruptible = grid.interruptible},
                          self.frame());
        if (self.frame().fault != 0) [[unlikely]] {
            result.fault = self.frame().fault;
            result.workgroup = self.frame().workgroup;
            result.trap = self.guard().trap();
            return false;
        }
        if (step == count) [[likely]] {
            return true;
        }
        first += step;
        count -= step;
        if (hub_->lost_flag().load(std::memory_order_relaxed)) {
            result.fault = static_cast<uint32_t>(KernelFault::kAbandoned);
            result.workgroup = first;
            return false;
        }
        most = NextMost(most, MonotonicNanoseconds() - begin_ns);
    }
}

Status WorkerPool::RunPublished(Worker& self,
                                const Grid& grid,
                                uint64_t first,
                                GridResult& result) {
    if (!threads_started_) {
        FORNAX_RETURN_IF_ERROR(StartThreads());
    }
    if (grid.scratch_bytes > pool_scratch_bytes_ || grid.region_counters > pool_region_counters_) {
        // No grid is open, so no thread looks at its frame.
        for (const std::unique_ptr<Worker>& worker : workers_) {
            FORNAX_RETURN_IF_ERROR(worker->Prepare(grid.scratch_bytes, grid.region_counters));
        }
        pool_scratch_bytes_ = std::max(pool_scratch_bytes_, grid.scratch_bytes);
        pool_region_counters_ = std::max(pool_region_counters_, grid.region_counters);
    }
    region_counts_.assign(grid.region_counters, 0);

    grid_ = grid;
    fault_.store(0, std::memory_order_relaxed);
    const uint64_t left = grid.workgroup_count - first;
    const uint64_t cost_ns =
        grid.workgroup_cost_ns ? grid.workgroup_cost_ns->load(std::memory_order_relaxed) : 0;
    const uint64_t worth =
        cost_ns == 0 ? left : left / std::max<uint64_t>(1, kWakeWorthNs / cost_ns);
    const auto wanted = static_cast<int32_t>(
        std::min({left, std::max<uint64_t>(worth, 1), uint64_t{threads_.size()}}));
    CutIntoRanges(first, grid.independent ? static_cast<uint32_t>(wanted) + 1 : 1, cost_ns);

    state_.fetch_add(kEpoch, std::memory_order_seq_cst);  // opens the grid
    if (sleepers_.load(std::memory_order_relaxed) != 0) {
        rung_ns_.store(MonotonicNanoseconds(), std::memory_order_relaxed);
    }
    doorbell_.fetch_add(1, std::memory_order_seq_cst);
    // Not earlier: a worker that finds the grid before the doorbell rings would spend it on
    // sleepers that look at the doorbell and sleep on.
    wake_budget_.store(wanted, std::memory_order_relaxed);
    WakeSleepers(2);

    const uint64_t begin_ns = MonotonicNanoseconds();
    const uint64_t done = RunClaims(self, 0);
    UpdateCost(grid.workgroup_cost_ns, MonotonicNanoseconds() - begin_ns, done);

    // Everything is claimed. Close the grid, so that nobody joins any more, and wait for those who
    // have.
    uint64_t state = state_.fetch_add(kEpoch, std::memory_order_seq_cst) + kEpoch;
    if (Participants(state) != 0) {
        constexpr int kSpins = 2'000;
        for (int i = 0; i < kSpins && Participants(state) != 0; ++i) {
            SpinPause();
            state = state_.load(std::memory_order_acquire);
        }
        while (Participants(state) != 0) {
            drained_.store(0, std::memory_order_relaxed);
            owner_asleep_.store(1, std::memory_order_seq_cst);
            state = state_.load(std::memory_order_seq_cst);
            if (Participants(state) != 0) {
                FutexWait(drained_, 0);
                state = state_.load(std::memory_order_seq_cst);
            }
            owner_asleep_.store(0, std::memory_order_relaxed);
        }
    }
    {
        std::lock_guard lock(counts_mutex_);
        self.frame().unit_counts += std::exchange(unit_counts_, {});
        for (size_t i = 0; i < region_counts_.size(); ++i) {
            self.frame().region_counts[i] += region_counts_[i];
        }
    }
    if (fault_.load(std::memory_order_relaxed) != 0) {
        result = first_fault_;
    }
    result.was_parallel = true;
    return OkStatus();
}

void WorkerPool::CutIntoRanges(uint64_t first, uint32_t count, uint64_t cost_ns) {
    const uint64_t left = grid_.workgroup_count - first;
    range_count_ = static_cast<uint32_t>(std::min<uint64_t>(count, std::max<uint64_t>(left, 1)));
    const uint64_t share = left / range_count_;
    const uint64_t more = left % range_count_;  // so many ranges are longer by one
    for (uint32_t i = 0; i < range_count_; ++i) {
        ranges_[i].next.store(first, std::memory_order_relaxed);
        first += share + (i < more ? 1 : 0);
        ranges_[i].end = first;
    }
    first_open_.store(0, std::memory_order_relaxed);
    chunk_divisor_ = kChunkDivisor * (range_count_ == 1 ? worker_count_ : 1);
    least_chunk_ = 1;
    uint64_t most = kFirstCall;
    if (cost_ns != 0) {
        least_chunk_ = std::clamp<uint64_t>(kLeastChunkNs / cost_ns, 1,
                                            std::max<uint64_t>(share / chunk_divisor_, 1));
        most = std::max<uint64_t>(1, kMostCallNs / cost_ns);
    }
    most_chunk_.store(most, std::memory_order_relaxed);
}

// Claims and runs chunks until none is left; returns how many workgroups that were.
uint64_t WorkerPool::RunClaims(Worker& worker, uint32_t home) {
    uint64_t done = home == 0 ? 0 : RunRange(worker, home);
    for (uint32_t i = first_open_.load(std::memory_order_relaxed); i < range_count_; ++i) {
        done += RunRange(worker, i);
        first_open_.store(i + 1, std::memory_order_relaxed);
    }
    return done;
}

uint64_t WorkerPool::RunRange(Worker& worker, uint32_t index) {
    const Grid& grid = grid_;
    Range& range = ranges_[index];
    const uint64_t end = range.end;
    uint64_t done = 0;
    for (;;) {
        const uint64_t seen = range.next.load(std::memory_order_relaxed);
        if (seen >= end) {
            return done;
        }
        // The sizes are chosen from values that others may change meanwhile, which does no harm:
        // the claim itself is one addition.
        const uint64_t most = most_chunk_.load(std::memory_order_relaxed);
        const uint64_t share = std::max(least_chunk_, (end - seen) / chunk_divisor_);
        const uint64_t first =
            range.next.fetch_add(std::min(share, most), std::memory_order_relaxed);
        if (first >= end) {
            return done;
        }
        const uint64_t chunk = std::min({share, most, end - first});
        const uint64_t begin_ns = share > most ? MonotonicNanoseconds() : 0;
        worker.guard().Call({.entry = grid.entry,
                             .dispatch = grid.frame,
                             .first_workgroup = first,
                             .count = chunk,
                             .interruptible = grid.interruptible,
                             .abandon = &fault_},
                            worker.frame());
        if (share > most) [[unlikely]] {
            most_chunk_.store(NextMost(most, MonotonicNanoseconds() - begin_ns),
                              std::memory_order_relaxed);
        }
        done += chunk;
        if (worker.frame().fault == 0 && hub_->lost_flag().load(std::memory_order_relaxed))
            [[unlikely]] {
            worker.frame().fault = static_cast<uint32_t>(KernelFault::kAbandoned);
        }
        if (worker.frame().fault != 0) {
            uint32_t none = 0;
            if (fault_.compare_exchange_strong(none, worker.frame().fault,
                                               std::memory_order_relaxed)) {
                first_fault_ = {.fault = worker.frame().fault,
                                .workgroup = worker.frame().workgroup,
                                .trap = worker.guard().trap()};
            }
            for (uint32_t i = 0; i < range_count_; ++i) {  // nobody claims any more
                ranges_[i].next.store(ranges_[i].end, std::memory_order_relaxed);
            }
            return done;
        }
    }
}

void WorkerPool::WakeSleepers(int32_t count) {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) {
        return;
    }
    const int32_t budget = wake_budget_.fetch_sub(count, std::memory_order_relaxed);
    if (budget > 0) {
        FutexWake(doorbell_, std::min(budget, count));
    }
}

void WorkerPool::ThreadMain(Worker& worker) {
    pthread_setname_np(pthread_self(),
                       fmt::format("fornax-w{}", worker.frame().worker_index).c_str());
    const KernelThread watched(watchdog_ms_);
    ScopedKernelFloatMode float_mode;
    AdaptiveSpin spin(1'000, 50'000);
    uint32_t seen = doorbell_.load(std::memory_order_seq_cst);
    // Looks before it waits: a grid may have been published, or the pool stopped, before this
    // thread read the doorbell for the first time.
    while (!stop_.load(std::memory_order_seq_cst)) {
        TakePart(worker);
        const auto rung = [&] { return doorbell_.load(std::memory_order_acquire) != seen; };
        const uint64_t begin_ns = MonotonicNanoseconds();
        if (!spin.Until(rung)) {
            sleepers_.fetch_add(1, std::memory_order_seq_cst);
            while (doorbell_.load(std::memory_order_seq_cst) == seen) {
                FutexWait(doorbell_, seen);
            }
            sleepers_.fetch_sub(1, std::memory_order_seq_cst);
            spin.EventCame(begin_ns, rung_ns_.load(std::memory_order_relaxed));
        }
        seen = doorbell_.load(std::memory_order_seq_cst);
    }
}

void WorkerPool::TakePart(Worker& worker) {
    // Registering first and looking second means that the owner either sees this worker or has
    // closed the grid.
    if (IsOpen(state_.fetch_add(1, std::memory_order_seq_cst))) {
        const uint32_t home = worker.frame().worker_index % range_count_;
        // Waking spreads like a tree, so that a grid reaches many sleepers in few steps.
        if (ranges_[home].next.load(std::memory_order_relaxed) < ranges_[home].end) {
            WakeSleepers(2);
        }
        worker.frame().fault = 0;
        RunClaims(worker, home);
        if (UnitCounts& counts = worker.frame().unit_counts; !counts.empty()) {
            std::lock_guard lock(counts_mutex_);
            unit_counts_ += std::exchange(counts, {});
        }
        if (grid_.region_counters != 0) {
            std::lock_guard lock(counts_mutex_);
            for (uint32_t i = 0; i < grid_.region_counters; ++i) {
                region_counts_[i] += std::exchange(worker.frame().region_counts[i], 0);
            }
        }
    }
    Leave();
}

void WorkerPool::Leave() {
    const uint64_t state = state_.fetch_sub(1, std::memory_order_seq_cst) - 1;
    if (Participants(state) == 0 && !IsOpen(state) &&
        owner_asleep_.load(std::memory_order_seq_cst) != 0) {
        drained_.store(1, std::memory_order_release);
        FutexWake(drained_);
    }
}

}  // namespace fornax::hal::model
