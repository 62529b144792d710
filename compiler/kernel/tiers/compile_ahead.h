// Threads that compile what will be wanted soon.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fornax::kernel {

// Runs jobs in the order in which they come, on as many threads as there are jobs for, up to a
// limit. Of one process (base/per_process.h); thread-safe.
class CompileAhead {
  public:
    using Job = std::function<void()>;
    // Beyond that jobs are dropped: what is not made ahead is made when it is needed.
    static constexpr size_t kMostJobs = 256;
    static constexpr size_t kMostThreads = 4;

    // As many threads as the machine has processors, because whoever wants the code mostly waits
    // for it; none with one processor.
    CompileAhead();
    // With none, no job is run.
    explicit CompileAhead(size_t most_threads) : most_threads_(most_threads) {}
    CompileAhead(const CompileAhead&) = delete;
    CompileAhead& operator=(const CompileAhead&) = delete;
    // Drops the jobs that have not begun, and waits for those that have.
    ~CompileAhead();

    // A job must not throw.
    void Add(Job job);

  private:
    void Work();
    // If one is to be had. `mutex_` is held.
    void StartThread();

    const size_t most_threads_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    size_t idle_threads_ = 0;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace fornax::kernel
