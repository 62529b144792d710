#include "compiler/kernel/tiered_kernel.h"

#include <signal.h>

#include <chrono>
#include <system_error>

namespace fornax::kernel {

namespace {

constexpr std::chrono::seconds kPatienceAtEnd{1};

hal::KernelEntry EntryOf(const LoadedObject& object) {
    return reinterpret_cast<hal::KernelEntry>(const_cast<void*>(object.entry()));
}

}  // namespace

TieredKernel::TieredKernel(const CacheEntryFacts& facts, std::unique_ptr<LoadedObject> quick)
    : quick_(std::move(quick)), quick_entry_(EntryOf(*quick_)) {
    entry = Run;
    context = this;
    workgroup_size = facts.workgroup_size;
    shared_bytes = facts.shared_bytes;
    scratch_bytes = facts.scratch_bytes;
    used_sets = facts.used_sets;
    independent_workgroups = facts.independent_workgroups;
    interruptible = true;
    name = facts.name;
}

void TieredKernel::Run(const hal::DispatchFrame* dispatch,
                       hal::WorkerFrame* worker,
                       uint64_t first_workgroup,
                       uint64_t count) {
    const auto* self = static_cast<const TieredKernel*>(dispatch->kernel_context);
    hal::KernelEntry full = self->full_entry_.load(std::memory_order_acquire);
    (full ? full : self->quick_entry_)(dispatch, worker, first_workgroup, count);
}

void TieredKernel::Install(std::unique_ptr<LoadedObject> full, std::vector<uint8_t> bytes) {
    full_ = std::move(full);
    serialized = std::move(bytes);
    full_entry_.store(EntryOf(*full_), std::memory_order_release);
    Abandon();
}

void TieredKernel::Abandon() {
    decided_.store(1, std::memory_order_release);
    decided_.notify_all();
}

const std::vector<uint8_t>& TieredKernel::Serialized() const {
    while (decided_.load(std::memory_order_acquire) == 0) {
        if (process_ != ProcessGeneration()) {
            return nothing_;
        }
        decided_.wait(0, std::memory_order_acquire);
    }
    return serialized;
}

BackgroundQueue::~BackgroundQueue() {
    std::deque<Job> dropped;
    {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, kPatienceAtEnd, [&] { return jobs_.empty() && !busy_; });
        stopping_ = true;
        dropped.swap(jobs_);
    }
    changed_.notify_all();
    for (Job& job : dropped) {
        job(/*run=*/false);
    }
    if (thread_.joinable()) {
        thread_.join();
    }
}

void BackgroundQueue::Add(Job job) {
    {
        std::unique_lock lock(mutex_);
        if (!thread_.joinable()) {
            // Signals are the application's threads' business.
            sigset_t all;
            sigset_t previous;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &previous);
            try {
                thread_ = std::thread([this] { Work(); });
            } catch (const std::system_error&) {
                // No thread is to be had: the code that there is stays.
            }
            pthread_sigmask(SIG_SETMASK, &previous, nullptr);
        }
        if (thread_.joinable()) {
            jobs_.push_back(std::move(job));
            lock.unlock();
            changed_.notify_all();
            return;
        }
    }
    job(/*run=*/false);
}

void BackgroundQueue::Work() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
        if (stopping_) {
            return;
        }
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        busy_ = true;
        lock.unlock();
        job(/*run=*/true);
        job = nullptr;
        lock.lock();
        busy_ = false;
        changed_.notify_all();
    }
}

}  // namespace fornax::kernel
