// Kernels that do not come back: faults of memory, and the watchdog.
//
// A kernel is code of the application in this process. Where its accesses are not checked it can
// touch memory that is not there, and it can run for ever. Neither may end or hang the process, so
// the threads that run kernels can leave one in the middle: a signal's handler goes back to where
// the kernel was called (KernelDesc::interruptible says that nothing is lost by that).
//
//   - SIGSEGV, SIGBUS, SIGFPE and SIGILL that the processor raises while this thread is inside of
//     an interruptible kernel. All others, of any thread, go to the handler that was there before.
//   - SIGURG, which a timer of the thread's own processor time sends to the thread ("a tick"): when
//     a kernel has made no progress from tick to tick for the time of the watchdog, it is left.
//     Time that the process is stopped, or does not get a processor, does not count. Nobody who
//     does not expect SIGURG is hurt by it: by default it is ignored.
//
// Kernels pay a few stores for each call, and one for each workgroup. Handlers are there from a
// device's first thread to the last device's end, and the threads of the application never run with
// them but to pass a signal on.
#pragma once

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/sanitized.h"
#include "hal/fault.h"
#include "hal/kernel_abi.h"

// The compiler's own setjmp keeps three registers, half as much work as the library's; sanitizers
// know only that.
#if defined(__x86_64__) && !defined(FORNAX_SANITIZED)
#define FORNAX_BUILTIN_SETJMP
#endif

namespace fornax::hal::model {

// The process's handlers, while somebody holds them. Thread-safe.
class FaultHandlers {
  public:
    static std::unique_ptr<FaultHandlers> Acquire();
    ~FaultHandlers();
    FaultHandlers(const FaultHandlers&) = delete;
    FaultHandlers& operator=(const FaultHandlers&) = delete;

  private:
    FaultHandlers() = default;
};

// One call of a kernel's entry.
struct KernelCall {
    KernelEntry entry;
    const DispatchFrame* dispatch;
    uint64_t first_workgroup;
    uint64_t count;
    bool interruptible;
    // The kernel is left when it does not come back and this is not 0; may be null.
    const std::atomic<uint32_t>* abandon = nullptr;
};

// Why the processor stopped a kernel (KernelFault::kTrap).
struct Trap {
    int signal = 0;
    int code = 0;  // siginfo_t::si_code
    FaultReport::Access access = FaultReport::Access::kNone;
    uint64_t address = 0;
    uint64_t instruction_address = 0;
};

// Calls kernels for one worker. Used by one thread at a time.
class KernelGuard {
  public:
    // `lost`, which may be null, is another reason to leave a kernel.
    explicit KernelGuard(const std::atomic<bool>* lost) : lost_(lost) {}

    // frame.fault is 0 before; afterwards what the kernel wrote there, or why it was left.
    void Call(const KernelCall& call, WorkerFrame& frame);

    // The trap of the last call that was left with kTrap.
    const Trap& trap() const { return trap_; }

  private:
    friend class KernelThread;

    // In a signal's handler, on the thread that is inside of Call.
    void OnTrap(int signal, const siginfo_t& info, const void* context);
    void OnTick(uint32_t patience);
    void End(KernelFault fault);
    [[noreturn]] void Leave(int signal, KernelFault fault);

    const std::atomic<bool>* const lost_;
    const KernelCall* call_ = nullptr;
    WorkerFrame* frame_ = nullptr;
    uint64_t calls_ = 0;
    Trap trap_;
    KernelFault left_by_ = KernelFault::kNone;
    // What the last tick saw, and how many have seen the same since.
    uint64_t seen_calls_ = 0;
    uint64_t seen_workgroup_ = 0;
    uint32_t idle_ticks_ = 0;
#ifdef FORNAX_BUILTIN_SETJMP
    void* caller_[5];
#else
    std::jmp_buf caller_;
#endif
};

// What a thread needs for its kernels to be watched, for the scope; made on that thread.
class KernelThread {
  public:
    // watchdog_ms: the processor time that one workgroup may take; 0 for as much as it likes.
    explicit KernelThread(uint64_t watchdog_ms);
    ~KernelThread();
    KernelThread(const KernelThread&) = delete;
    KernelThread& operator=(const KernelThread&) = delete;

  private:
    friend class FaultHandlers;

    void StartTimer(uint64_t watchdog_ms);
    static void HandleSignal(int signal, siginfo_t* info, void* context);

    void* stack_ = nullptr;  // for handlers: a kernel may have used up the thread's own
    size_t stack_bytes_ = 0;
    timer_t timer_ = {};
    bool has_timer_ = false;
    uint32_t patience_ = 0;  // in ticks without progress; 0 without end
};

}  // namespace fornax::hal::model
