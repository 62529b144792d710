// State that a child process of fork must not take over from its parent.
//
// fork copies the memory, but only the thread that called it: what other threads were changing
// stays half changed in the child, and what they had locked stays locked. So the driver keeps what
// its threads share in a PerProcess, of which a child gets a fresh one, or behind a ProcessMutex,
// which a child finds free. Handlers of fork (pthread_atfork) could do the same by holding every
// lock while the parent forks, at the price of a parent that waits for all of its threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>

namespace fornax {

// Tells a process from its ancestors: constant while the process lives, another number in a child.
// Never 0. Costs a load; thread-safe, also in a child.
uint64_t ProcessGeneration();

// Owns a T. A child process gets a new one when it first asks; the parent's copy is neither touched
// nor destroyed there.
template <typename T>
class PerProcess {
  public:
    using Make = std::function<std::unique_ptr<T>()>;

    PerProcess() : PerProcess([] { return std::make_unique<T>(); }) {}
    // `make` makes the T of this process now, and that of a child when it asks.
    explicit PerProcess(Make make) : make_(std::move(make)), slot_(NewSlot()) {}
    ~PerProcess() {
        if (Slot* slot = slot_.load(std::memory_order_acquire); slot->IsOurs()) {
            delete slot;
        }
    }
    PerProcess(const PerProcess&) = delete;
    PerProcess& operator=(const PerProcess&) = delete;

    // Thread-safe, and throws what `make` throws in a child that asks for the first time.
    T& Get() {
        Slot* slot = slot_.load(std::memory_order_acquire);
        while (!slot->IsOurs()) {
            std::unique_ptr<Slot> fresh(NewSlot());
            if (slot_.compare_exchange_strong(slot, fresh.get(), std::memory_order_acq_rel)) {
                slot = fresh.release();
            }
        }
        return *slot->value;
    }
    // Null in a child that has not asked for its own.
    T* GetIfMade() {
        Slot* slot = slot_.load(std::memory_order_acquire);
        return slot->IsOurs() ? slot->value.get() : nullptr;
    }

  private:
    struct Slot {
        const uint64_t process;
        std::unique_ptr<T> value;

        bool IsOurs() const { return process == ProcessGeneration(); }
    };
    Slot* NewSlot() const { return new Slot{ProcessGeneration(), make_()}; }

    const Make make_;
    std::atomic<Slot*> slot_;
};

// A mutex that a child process finds free, whoever held it in the parent.
class ProcessMutex {
  public:
    ProcessMutex() = default;
    ProcessMutex(const ProcessMutex&) = delete;
    ProcessMutex& operator=(const ProcessMutex&) = delete;

    void lock() {
        RenewInChild();
        mutex_.lock();
    }
    bool try_lock() {
        RenewInChild();
        return mutex_.try_lock();
    }
    void unlock() { mutex_.unlock(); }

    // For the holder: whether a thread of the parent held it at the fork, so that what it guards
    // may be half changed. True once.
    bool TakeAbandoned() { return abandoned_.exchange(false, std::memory_order_relaxed); }

  private:
    void RenewInChild() {
        if (process_.load(std::memory_order_acquire) != ProcessGeneration()) [[unlikely]] {
            Renew();
        }
    }
    void Renew();

    std::mutex mutex_;
    std::atomic<uint64_t> process_ = ProcessGeneration();
    std::atomic<bool> abandoned_ = false;
};

}  // namespace fornax
