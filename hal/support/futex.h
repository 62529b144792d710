// Sleeping on a 32-bit word, for the device's threads and for timeline waits: the operating
// system's primitive with a timeout, which std::atomic::wait lacks.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <span>

namespace fornax::hal {

static_assert(sizeof(std::atomic<uint32_t>) == 4);

inline constexpr uint64_t kNoTimeout = UINT64_MAX;

// Sleeps while `word` holds `expected`, at most timeout_ns. May return early for no reason.
inline void FutexWait(const std::atomic<uint32_t>& word,
                      uint32_t expected,
                      uint64_t timeout_ns = kNoTimeout) {
    constexpr uint64_t kSecond = 1'000'000'000;
    timespec relative = {};
    if (timeout_ns != kNoTimeout) {
        relative.tv_sec = static_cast<time_t>(timeout_ns / kSecond);
        relative.tv_nsec = static_cast<long>(timeout_ns % kSecond);
    }
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected,
            timeout_ns == kNoTimeout ? nullptr : &relative, nullptr, 0);
}

// Wakes at most `count` sleepers.
inline void FutexWake(const std::atomic<uint32_t>& word, int count = INT_MAX) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// A word to sleep on, and what it held when the sleeper looked.
struct FutexWord {
    const std::atomic<uint32_t>* word;
    uint32_t expected;
    bool shared;  // with other processes
};

// Sleeps while every word holds what is expected, at most timeout_ns. May return early for no
// reason: with a kernel before 5.16, or with more words than it takes, each fifth of a millisecond.
inline void FutexWaitAny(std::span<const FutexWord> words, uint64_t timeout_ns = kNoTimeout) {
    constexpr uint64_t kSecond = 1'000'000'000;
    constexpr uint64_t kPollNs = 200'000;
    timespec deadline = {};
#ifdef SYS_futex_waitv
    if (words.size() <= FUTEX_WAITV_MAX) {
        futex_waitv waiters[FUTEX_WAITV_MAX] = {};
        for (size_t i = 0; i < words.size(); ++i) {
            waiters[i].val = words[i].expected;
            waiters[i].uaddr = reinterpret_cast<uintptr_t>(words[i].word);
            waiters[i].flags = FUTEX_32 | (words[i].shared ? 0 : FUTEX_PRIVATE_FLAG);
        }
        if (timeout_ns != kNoTimeout) {
            clock_gettime(CLOCK_MONOTONIC, &deadline);
            const uint64_t end_ns = static_cast<uint64_t>(deadline.tv_nsec) + timeout_ns % kSecond;
            deadline.tv_sec += static_cast<time_t>(timeout_ns / kSecond + end_ns / kSecond);
            deadline.tv_nsec = static_cast<long>(end_ns % kSecond);
        }
        if (syscall(SYS_futex_waitv, waiters, words.size(), 0,
                    timeout_ns == kNoTimeout ? nullptr : &deadline, CLOCK_MONOTONIC) >= 0 ||
            errno != ENOSYS) {
            return;
        }
    }
#endif
    deadline = {.tv_sec = 0, .tv_nsec = static_cast<long>(std::min(timeout_ns, kPollNs))};
    nanosleep(&deadline, nullptr);
}

// A breath in a spinning loop.
inline void SpinPause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// CLOCK_MONOTONIC in nanoseconds: the clock of timestamps and timeouts.
inline uint64_t MonotonicNanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace fornax::hal
