#include "base/per_process.h"

#include <sys/mman.h>
#include <unistd.h>

namespace fornax {

namespace {

// Set in ProcessMutex::process_ while a thread of that process renews the mutex.
constexpr uint64_t kRenewing = uint64_t{1} << 63;

constinit std::atomic<uint64_t> last_generation = 0;

// The process's generation, in memory that the system zeroes in a child; null where it does not
// offer that (Linux before 4.14).
std::atomic<uint64_t>* WipedWord() {
    static std::atomic<uint64_t>* const word = []() -> std::atomic<uint64_t>* {
        const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        void* page =
            mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) {
            return nullptr;
        }
        if (madvise(page, page_bytes, MADV_WIPEONFORK) != 0) {
            munmap(page, page_bytes);
            return nullptr;
        }
        return new (page) std::atomic<uint64_t>(0);
    }();
    return word;
}

// Made when the library is loaded, so that no fork can come in the middle of it.
[[maybe_unused]] std::atomic<uint64_t>* const made_early = WipedWord();

}  // namespace

uint64_t ProcessGeneration() {
    std::atomic<uint64_t>* const word = WipedWord();
    if (word == nullptr) {
        return static_cast<uint64_t>(getpid());
    }
    uint64_t generation = word->load(std::memory_order_acquire);
    if (generation == 0) [[unlikely]] {
        // The count is in ordinary memory, so a child goes on counting where its parent was.
        const uint64_t next = last_generation.fetch_add(1, std::memory_order_relaxed) + 1;
        if (word->compare_exchange_strong(generation, next, std::memory_order_acq_rel)) {
            return next;
        }
    }
    return generation;
}

// One thread of the child renews the mutex, and the others wait for it.
void ProcessMutex::Renew() {
    const uint64_t now = ProcessGeneration();
    uint64_t seen = process_.load(std::memory_order_acquire);
    while (seen != now) {
        if (seen == (now | kRenewing)) {
            process_.wait(seen, std::memory_order_acquire);
            seen = process_.load(std::memory_order_acquire);
            continue;
        }
        if (!process_.compare_exchange_strong(seen, now | kRenewing, std::memory_order_acq_rel)) {
            continue;
        }
        if (!mutex_.try_lock()) {
            abandoned_.store(true, std::memory_order_relaxed);
        }
        new (&mutex_) std::mutex;
        process_.store(now, std::memory_order_release);
        process_.notify_all();
        return;
    }
}

}  // namespace fornax
