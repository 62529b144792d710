#include "compiler/kernel/tiers/tiered_kernel.h"

#include <signal.h>

#include <algorithm>
#include <system_error>

namespace fornax::kernel {

namespace {

constexpr std::chrono::seconds kPatienceAtEnd{1};

hal::KernelEntry EntryOf(const LoadedObject& object) {
    return reinterpret_cast<hal::KernelEntry>(const_cast<void*>(object.entry()));
}

}  // namespace

TieredKernel::TieredKernel(const CacheEntryFacts& facts, std::unique_ptr<LoadedObject> baseline)
    : baseline_(std::move(baseline)), baseline_entry_(EntryOf(*baseline_)) {
    entry = Run;
    context = this;
    workgroup_size = facts.workgroup_size;
    shared_bytes = facts.shared_bytes;
    scratch_bytes = facts.scratch_bytes;
    used_sets = facts.used_sets;
    independent_workgroups = facts.independent_workgroups;
    interruptible = true;
    name = facts.name;
    deciding_words = facts.deciding_words;
    cost = facts.cost;
}

void TieredKernel::Run(const hal::DispatchFrame* dispatch,
                       hal::WorkerFrame* worker,
                       uint64_t first_workgroup,
                       uint64_t count) {
    const auto* self = static_cast<const TieredKernel*>(dispatch->kernel_context);
    if (hal::KernelEntry optimized = self->optimized_entry_.load(std::memory_order_acquire)) {
        optimized(dispatch, worker, first_workgroup, count);
        return;
    }
    // A kernel that is stopped does not come back here; what it took is not counted.
    const auto start = std::chrono::steady_clock::now();
    self->baseline_entry_(dispatch, worker, first_workgroup, count);
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - start;
    self->baseline_nanoseconds_.fetch_add(time.count(), std::memory_order_relaxed);
}

std::chrono::nanoseconds TieredKernel::baseline_time() const {
    return is_waited_for_.load(std::memory_order_relaxed)
               ? std::chrono::nanoseconds::max()
               : std::chrono::nanoseconds(baseline_nanoseconds_.load(std::memory_order_relaxed));
}

void TieredKernel::Install(std::unique_ptr<LoadedObject> optimized, std::vector<uint8_t> bytes) {
    optimized_ = std::move(optimized);
    serialized = std::move(bytes);
    optimized_entry_.store(EntryOf(*optimized_), std::memory_order_release);
    Abandon();
}

void TieredKernel::Abandon() {
    decided_.store(1, std::memory_order_release);
    decided_.notify_all();
}

const std::vector<uint8_t>& TieredKernel::Serialized() const {
    is_waited_for_.store(true, std::memory_order_relaxed);
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
        ending_ = true;
        changed_.notify_all();
        changed_.wait_for(lock, kPatienceAtEnd, [&] { return jobs_.empty() && !busy_; });
        stopping_ = true;
        dropped.swap(jobs_);
    }
    changed_.notify_all();
    for (Job& job : dropped) {
        job.work(/*run=*/false);
    }
    if (thread_.joinable()) {
        thread_.join();
    }
}

void BackgroundQueue::Add(Job job) {
    std::vector<Job> dropped;
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
            last_added_ = last_activity_ = std::chrono::steady_clock::now();
            dropped = TakeOrphans();
        } else {
            dropped.push_back(std::move(job));
        }
    }
    changed_.notify_all();
    for (Job& orphan : dropped) {
        orphan.work(/*run=*/false);
    }
}

std::vector<BackgroundQueue::Job> BackgroundQueue::TakeOrphans() {
    std::vector<Job> taken;
    if (jobs_.size() <= kMaxOrphans) {
        return taken;
    }
    const auto is_orphan = [](const Job& job) { return !job.run_time(); };
    auto orphans = static_cast<size_t>(std::count_if(jobs_.begin(), jobs_.end(), is_orphan));
    std::erase_if(jobs_, [&](Job& job) {
        if (orphans <= kMaxOrphans || !is_orphan(job)) {
            return false;
        }
        --orphans;
        taken.push_back(std::move(job));
        return true;
    });
    return taken;
}

std::optional<BackgroundQueue::Job> BackgroundQueue::Take() {
    using std::chrono::nanoseconds;
    if (jobs_.empty()) {
        return std::nullopt;
    }
    const auto now = std::chrono::steady_clock::now();
    const bool is_idle = has_idle_processor_();
    const bool is_settled = now >= last_added_ + kSettled;
    nanoseconds sum{0};
    size_t best = 0;
    std::optional<nanoseconds> most;
    bool pays = false;
    for (size_t i = 0; i < jobs_.size(); ++i) {
        const std::optional<nanoseconds> time = jobs_[i].run_time();
        sum += std::min(time.value_or(nanoseconds(0)), nanoseconds(kWorthIt));
        const nanoseconds least = is_idle      ? nanoseconds(0)
                                  : is_settled ? jobs_[i].takes / kRepeats
                                               : jobs_[i].takes;
        const bool this_pays = time >= std::max<nanoseconds>(kWorthIt, least);
        // No time is the least.
        if (std::pair(this_pays, time) > std::pair(pays, most)) {
            best = i;
            most = time;
            pays = this_pays;
        }
    }
    if (sum != run_time_) {
        run_time_ = sum;
        last_activity_ = now;
    }
    if (!pays && !ending_ && !(is_idle && now >= last_activity_ + kCalm)) {
        return std::nullopt;
    }
    Job job = std::move(jobs_[best]);
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(best));
    run_time_ -= std::min(most.value_or(nanoseconds(0)), nanoseconds(kWorthIt));
    return job;
}

void BackgroundQueue::Work() {
    constexpr std::chrono::milliseconds kLooksEvery{20};
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (std::optional<Job> job = Take()) {
            busy_ = true;
            lock.unlock();
            job->work(/*run=*/true);
            job.reset();
            lock.lock();
            busy_ = false;
            changed_.notify_all();
        } else if (jobs_.empty()) {
            changed_.wait(lock);
        } else {
            changed_.wait_for(lock, kLooksEvery);
        }
    }
}

}  // namespace fornax::kernel
