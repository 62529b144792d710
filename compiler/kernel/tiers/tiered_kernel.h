// A kernel that runs its baseline tier until its optimized tier arrives.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/per_process.h"
#include "compiler/kernel/cache/cache_entry.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/interface/compiled_kernel.h"
#include "compiler/kernel/tiers/idle_processors.h"

namespace fornax::kernel {

class TieredKernel : public CompiledKernel {
  public:
    TieredKernel(const CacheEntryFacts& facts, std::unique_ptr<LoadedObject> baseline);

    // From now on calls of the entry go to `optimized`; those that are under way stay where they
    // are. `serialized` is what a cache keeps. Once.
    void Install(std::unique_ptr<LoadedObject> optimized, std::vector<uint8_t> serialized);
    // The optimized tier will not come. Once, instead.
    void Abandon();

    // Waits for the optimized tier. In a child process, where the compilation does not go on, only
    // what was there at the fork.
    const std::vector<uint8_t>& Serialized() const override;
    bool is_optimized() const {
        return optimized_entry_.load(std::memory_order_acquire) != nullptr;
    }
    // How long the baseline tier has run, over all workers; the maximum while somebody waits for
    // the optimized tier.
    std::chrono::nanoseconds baseline_time() const;

  private:
    static void Run(const hal::DispatchFrame* dispatch,
                    hal::WorkerFrame* worker,
                    uint64_t first_workgroup,
                    uint64_t count);

    std::unique_ptr<LoadedObject> baseline_;
    std::unique_ptr<LoadedObject> optimized_;
    hal::KernelEntry baseline_entry_;
    std::atomic<hal::KernelEntry> optimized_entry_ = nullptr;
    mutable std::atomic<int64_t> baseline_nanoseconds_ = 0;
    mutable std::atomic<bool> is_waited_for_ = false;
    // Whether `serialized` is what it will be. No lock: nothing of it may be left held, or waited
    // for, when a child process destroys the kernel.
    std::atomic<uint32_t> decided_ = 0;
    const uint64_t process_ = ProcessGeneration();
    const std::vector<uint8_t> nothing_;
};

// Jobs for one thread, which starts with the first. Of one process (base/per_process.h).
//
// The job goes first whose kernel has run longest. Where all processors are busy a compilation
// takes from what runs, so it has to pay. As long as kernels keep coming, one is compiled when its
// baseline tier has run for as long as the compilation will probably take, which costs no more than
// twice what would be best whatever comes (the ski-rental problem). Once no kernel has come for a
// while the same ones will run again and again, and a part of that time is enough; so it is where
// a processor is idle. Kernels that have hardly run wait until a processor is idle, no kernel has
// come and none has run for a while, or for the queue's end. Those that no longer exist, whose code
// only fills the cache, are the last of them.
class BackgroundQueue {
  public:
    struct Job {
        // For how long what the job would make faster has run; nothing once it is gone.
        std::function<std::optional<std::chrono::nanoseconds>()> run_time;
        // `run` is false when the job is only told that it will never run.
        std::function<void(bool run)> work;
        // The processor time that the work will probably take.
        std::chrono::nanoseconds takes{0};
    };
    // A kernel that has run so long is worth the time of a processor that is idle.
    static constexpr std::chrono::milliseconds kWorthIt{1};
    // No kernel has come for so long: those that there are will run again.
    static constexpr std::chrono::milliseconds kSettled{500};
    // How many times as long as until then they are expected to run.
    static constexpr int kRepeats = 8;
    // What the jobs of kernels that have hardly run wait for.
    static constexpr std::chrono::milliseconds kCalm{250};
    // How many jobs of destroyed kernels are kept; the oldest beyond that are dropped.
    static constexpr size_t kMaxOrphans = 256;

    // `has_idle_processor` is asked by the queue's thread, again and again while there are jobs.
    explicit BackgroundQueue(std::function<bool()> has_idle_processor)
        : has_idle_processor_(std::move(has_idle_processor)) {}
    // Asks the machine.
    BackgroundQueue()
        : BackgroundQueue([idle = IdleProcessors()]() mutable { return idle.Any(); }) {}
    BackgroundQueue(const BackgroundQueue&) = delete;
    BackgroundQueue& operator=(const BackgroundQueue&) = delete;
    // Goes on for a second at most, so that what a short program has compiled is there at its next
    // start; then gives the rest up and waits for the job that runs.
    ~BackgroundQueue();

    void Add(Job job);

  private:
    void Work();
    // Removes the job whose turn it is, if it is anybody's. `mutex_` is held.
    std::optional<Job> Take();
    // Removes what exceeds kMaxOrphans. `mutex_` is held.
    std::vector<Job> TakeOrphans();

    const std::function<bool()> has_idle_processor_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::deque<Job> jobs_;  // in the order in which they came
    std::chrono::steady_clock::time_point last_added_;
    // When a job came, or the kernels of jobs_ were seen to have run for another time in sum.
    std::chrono::steady_clock::time_point last_activity_;
    std::chrono::nanoseconds run_time_{0};
    bool ending_ = false;
    bool stopping_ = false;
    bool busy_ = false;
    std::thread thread_;
};

}  // namespace fornax::kernel
