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

#include "compiler/kernel/cache_entry.h"
#include "compiler/kernel/codegen/jit_loader.h"
#include "compiler/kernel/kernel_compiler.h"

namespace fornax::kernel {

class TieredKernel : public CompiledKernel {
  public:
    TieredKernel(const CacheEntryFacts& facts, std::unique_ptr<LoadedObject> quick);

    // From now on calls of the entry go to `full`; those that are under way stay where they are.
    // `serialized` is what a cache keeps. Once.
    void Install(std::unique_ptr<LoadedObject> full, std::vector<uint8_t> serialized);
    // The full code will not come. Once, instead.
    void Abandon();

    // Waits for the full code.
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
    mutable std::mutex mutex_;  // guards what follows
    mutable std::condition_variable changed_;
    bool decided_ = false;
};

// Jobs for one thread, which starts with the first.
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
    pid_t process_ = 0;  // that has the thread
};

}  // namespace fornax::kernel
