#include "compiler/kernel/tiers/compile_ahead.h"

#include <signal.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace fornax::kernel {

namespace {

size_t ThreadsOfThisMachine() {
    const size_t processors = std::thread::hardware_concurrency();
    return processors < 2 ? 0 : std::min(processors, CompileAhead::kMostThreads);
}

}  // namespace

CompileAhead::CompileAhead() : CompileAhead(ThreadsOfThisMachine()) {}

CompileAhead::~CompileAhead() {
    std::deque<Job> dropped;
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
        dropped.swap(jobs_);
    }
    dropped.clear();
    changed_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

void CompileAhead::Add(Job job) {
    {
        std::lock_guard lock(mutex_);
        if (jobs_.size() >= kMostJobs) {
            return;
        }
        if (idle_threads_ <= jobs_.size() && threads_.size() < most_threads_) {
            StartThread();
        }
        if (threads_.empty()) {
            return;
        }
        jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
}

void CompileAhead::StartThread() {
    // Signals are the application's threads' business.
    sigset_t all;
    sigset_t previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    try {
        threads_.emplace_back([this] { Work(); });
    } catch (const std::exception&) {
        // Those that there are have to do.
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

void CompileAhead::Work() {
    std::unique_lock lock(mutex_);
    while (true) {
        ++idle_threads_;
        changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
        --idle_threads_;
        if (stopping_) {
            return;
        }
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job();
        job = nullptr;
        lock.lock();
    }
}

}  // namespace fornax::kernel
