// A kernel that runs quick code until its full code arrives.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/per_process.h"
#include "compiler/kernel/cache_entry.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/compiled_kernel.h"

namespace fornax::kernel {

class TieredKernel : public CompiledKernel {
  public:
    TieredKernel(const CacheEntryFacts& facts, std::unique_ptr<LoadedObject> quick);

    // From now on calls of the entry go to `full`; those that are under way stay where they are.
    // `serialized` is what a cache keeps. Once.
    void Install(std::unique_ptr<LoadedObject> full, std::vector<uint8_t> serialized);
    // The full code will not come. Once, instead.
    void Abandon();

    // Waits for the full code. In a child process, where the compilation does not go on, only what
    // was there at the fork.
    const std::vector<uint8_t>& Serialized() const override;
    bool is_full() const { return full_entry_.load(std::memory_order_acquire) != nullptr; }

  private:
    static void Run(const hal::DispatchFrame* dispatch,
                    hal::WorkerFrame* worker,
                    uint64_t first_workgroup,
                    uint64_t count);

    std::unique_ptr<LoadedObject> quick_;
    std::unique_ptr<LoadedObject> full_;
    hal::KernelEntry quick_entry_;
    std::atomic<hal::KernelEntry> full_entry_ = nullptr;
    // Whether `serialized` is what it will be. No lock: nothing of it may be left held, or waited
    // for, when a child process destroys the kernel.
    std::atomic<uint32_t> decided_ = 0;
    const uint64_t process_ = ProcessGeneration();
    const std::vector<uint8_t> nothing_;
};

// Jobs for one thread, which starts with the first. Of one process (base/per_process.h).
class BackgroundQueue {
  public:
    // `run` is false when the job is only told that it will never run.
    using Job = std::function<void(bool run)>;

    BackgroundQueue() = default;
    BackgroundQueue(const BackgroundQueue&) = delete;
    BackgroundQueue& operator=(const BackgroundQueue&) = delete;
    // Goes on for a second at most, so that what a short program has compiled is there at its next
    // start; then gives the rest up and waits for the job that runs.
    ~BackgroundQueue();

    void Add(Job job);

  private:
    void Work();

    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    bool stopping_ = false;
    bool busy_ = false;
    std::thread thread_;
};

}  // namespace fornax::kernel
