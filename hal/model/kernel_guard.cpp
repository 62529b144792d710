// The handlers of signals, and the way out of a kernel.
//
// What runs in a handler keeps to functions that are safe there (POSIX.1-2017, 2.4.3).
#include "hal/model/kernel_guard.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <mutex>

#include "base/file.h"
#include "base/log.h"
#include "base/per_process.h"
#include "hal/memory.h"
#include "hal/model/float_mode.h"

namespace fornax::hal::model {

namespace {

constexpr int kTickSignal = SIGURG;
constexpr std::array kTrapSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, kTickSignal};

// Also what a device that is destroyed, or lost by another worker, waits for a kernel that goes on.
constexpr uint64_t kLongestTickMs = 100;
// A kernel is left between one and 1 + 1/kTicks times the watchdog's time.
constexpr uint64_t kTicks = 8;

// A handler that was there before. Constant while ours is installed.
struct Previous {
    struct sigaction action = {};
    bool installed = false;  // ours is, or lies below one that somebody has put on top
};

ProcessMutex handlers_mutex;  // of the handlers' installation; never taken in one
int handlers_holders = 0;
std::array<Previous, kSignals.size()> previous_handlers;

Previous& PreviousOf(int signal) {
    const auto found = std::ranges::find(kSignals, signal);
    return previous_handlers[static_cast<size_t>(found - kSignals.begin())];
}

// Read in handlers, so they must not need an allocation: the thread's own block, which is there
// from its start.
__attribute__((tls_model("initial-exec"))) thread_local KernelGuard* running = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local const KernelThread* this_thread = nullptr;

bool HasHandler(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 ||
           (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// As if ours were not there.
void PassOn(int signal, siginfo_t* info, void* context) {
    const struct sigaction& action = PreviousOf(signal).action;
    if (!HasHandler(action)) {
        const bool of_the_processor = info->si_code > 0 && signal != kTickSignal;
        // The system does not let a fault of the processor be ignored.
        if (signal == kTickSignal || (action.sa_handler == SIG_IGN && !of_the_processor)) {
            return;
        }
        struct sigaction fatal = {};
        fatal.sa_handler = SIG_DFL;
        sigaction(signal, &fatal, nullptr);
        // A fault comes again when its instruction is repeated.
        if (!of_the_processor) {
            syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
        }
        return;
    }
    sigset_t before;
    sigset_t blocked = action.sa_mask;
    sigdelset(&blocked, signal);  // it is blocked already
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if ((action.sa_flags & SA_NODEFER) != 0) {
        sigset_t own;
        sigemptyset(&own);
        sigaddset(&own, signal);
        pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
    }
    if ((action.sa_flags & SA_SIGINFO) != 0) {
        action.sa_sigaction(signal, info, context);
    } else {
        action.sa_handler(signal);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// What the processor says of the access that it refused.
Trap ReadTrap(int signal, const siginfo_t& info, const void* context) {
    Trap trap{.signal = signal, .code = info.si_code};
    const bool of_memory = signal == SIGSEGV || signal == SIGBUS;
    if (of_memory) {
        trap.address = reinterpret_cast<uint64_t>(info.si_addr);
        trap.access = FaultReport::Access::kRead;
    }
#if defined(__x86_64__)
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
    trap.instruction_address = static_cast<uint64_t>(machine.gregs[REG_RIP]);
    // "Page-Fault Error Code" (Intel SDM volume 3, 4.7); only that exception (14) has one.
    constexpr greg_t kPageFault = 14;
    constexpr greg_t kWrite = 1 << 1;
    constexpr greg_t kFetch = 1 << 4;
    if (of_memory && machine.gregs[REG_TRAPNO] == kPageFault) {
        if ((machine.gregs[REG_ERR] & kFetch) != 0) {
            trap.access = FaultReport::Access::kExecute;
        } else if ((machine.gregs[REG_ERR] & kWrite) != 0) {
            trap.access = FaultReport::Access::kWrite;
        }
    }
#elif defined(__aarch64__)
    trap.instruction_address = static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
    (void)context;
#endif
    return trap;
}

}  // namespace

// --- Kernels -------------------------------------------------------------------------------------

void KernelGuard::Call(const KernelCall& call, WorkerFrame& frame) {
    frame.workgroup = call.first_workgroup;
    call_ = &call;
    frame_ = &frame;
    ++calls_;
    left_by_ = KernelFault::kNone;
    // The handler runs on this very thread, so the order matters to the compiler alone.
#ifdef FORNAX_BUILTIN_SETJMP
    const int left = __builtin_setjmp(caller_);
#else
    const int left = _setjmp(caller_);
#endif
    if (left == 0) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        running = this;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        call.entry(call.dispatch, &frame, call.first_workgroup, call.count);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        running = nullptr;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (frame.stop_request == 0) [[likely]] {
            return;
        }
        frame.stop_request = 0;
    } else {
        SetKernelFloatMode();  // kernels may change it for a while
    }
    if (frame.fault == 0) {
        frame.fault = static_cast<uint32_t>(left_by_);
    }
}

void KernelGuard::OnTrap(int signal, const siginfo_t& info, const void* context) {
    if (!call_->interruptible) {
        return;
    }
    trap_ = ReadTrap(signal, info, context);
    Leave(signal, KernelFault::kTrap);
}

void KernelGuard::OnTick(uint32_t patience) {
    const bool abandoned =
        (lost_ != nullptr && lost_->load(std::memory_order_relaxed)) ||
        (call_->abandon != nullptr && call_->abandon->load(std::memory_order_relaxed) != 0);
    if (abandoned) {
        End(KernelFault::kAbandoned);
        return;
    }
    const uint64_t workgroup = std::atomic_ref(frame_->workgroup).load(std::memory_order_relaxed);
    if (seen_calls_ != calls_ || seen_workgroup_ != workgroup) {
        seen_calls_ = calls_;
        seen_workgroup_ = workgroup;
        idle_ticks_ = 0;
        return;
    }
    if (patience != 0 && ++idle_ticks_ >= patience) {
        End(KernelFault::kWatchdog);
    }
}

void KernelGuard::End(KernelFault fault) {
    if (call_->interruptible) {
        Leave(kTickSignal, fault);
    }
    if (left_by_ == KernelFault::kNone) {
        left_by_ = fault;
    }
    std::atomic_ref(frame_->stop_request).store(1, std::memory_order_relaxed);
}

void KernelGuard::Leave(int signal, KernelFault fault) {
    left_by_ = fault;
    running = nullptr;
    // Blocked while its handler runs; returning would do this, too.
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, signal);
    pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
#ifdef FORNAX_BUILTIN_SETJMP
    __builtin_longjmp(caller_, 1);
#else
    std::longjmp(caller_, 1);
#endif
}

// --- Threads -------------------------------------------------------------------------------------

KernelThread::KernelThread(uint64_t watchdog_ms) {
    // A frame with all of the processor's state, and what handlers need beside it.
    constexpr size_t kHandlerBytes = 64 * 1024;
    stack_bytes_ = (std::max<size_t>(getauxval(AT_MINSIGSTKSZ), MINSIGSTKSZ) + kHandlerBytes) /
                   kMemoryPageBytes * kMemoryPageBytes;
    void* stack = mmap(nullptr, stack_bytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack != MAP_FAILED) {
        stack_ = stack;
        const stack_t alternate = {.ss_sp = stack_, .ss_flags = 0, .ss_size = stack_bytes_};
        sigaltstack(&alternate, nullptr);
    }

    this_thread = this;
    StartTimer(watchdog_ms);

    // The other signals belong to the application's threads and stay blocked.
    sigset_t own;
    sigemptyset(&own);
    for (const int signal : kTrapSignals) {
        sigaddset(&own, signal);
    }
    if (has_timer_) {
        sigaddset(&own, kTickSignal);
    }
    pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
}

// Without a watchdog there are ticks all the same: when one worker's kernel has faulted, those of
// others may wait for it for ever.
void KernelThread::StartTimer(uint64_t watchdog_ms) {
    const uint64_t tick_ms = watchdog_ms == 0
                                 ? kLongestTickMs
                                 : std::clamp<uint64_t>(watchdog_ms / kTicks, 1, kLongestTickMs);
    patience_ = static_cast<uint32_t>(
        std::min<uint64_t>((watchdog_ms + tick_ms - 1) / tick_ms, UINT32_MAX));
    struct sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kTickSignal;
    event.sigev_value.sival_ptr = this;
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    struct itimerspec period = {};
    period.it_interval.tv_sec = static_cast<time_t>(tick_ms / 1'000);
    period.it_interval.tv_nsec = static_cast<long>(tick_ms % 1'000 * 1'000'000);
    period.it_value = period.it_interval;
    has_timer_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
    if (!has_timer_ || timer_settime(timer_, 0, &period, nullptr) != 0) {
        LogInfo("A thread of the device has no timer, so nothing stops endless kernels: {}.",
                ErrnoMessage(errno));
    }
}

KernelThread::~KernelThread() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    if (has_timer_) {
        timer_delete(timer_);
    }
    this_thread = nullptr;
    if (stack_ != nullptr) {
        const stack_t none = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
        sigaltstack(&none, nullptr);
        munmap(stack_, stack_bytes_);
    }
}

void KernelThread::HandleSignal(int signal, siginfo_t* info, void* context) {
    const int saved_errno = errno;
    KernelGuard* const guard = running;
    const KernelThread* const thread = this_thread;
    if (signal == kTickSignal && info->si_code == SI_TIMER && thread != nullptr &&
        info->si_value.sival_ptr == thread) {
        if (guard != nullptr) {
            guard->OnTick(thread->patience_);
        }
    } else {
        // Codes above 0 are the kernel's: nobody sent the signal.
        if (guard != nullptr && info->si_code > 0 && signal != kTickSignal) {
            guard->OnTrap(signal, *info, context);
        }
        PassOn(signal, info, context);
    }
    errno = saved_errno;
}

// --- Handlers ------------------------------------------------------------------------------------

namespace {

bool IsOurs(const struct sigaction& action, void (*ours)(int, siginfo_t*, void*)) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == ours;
}

// Under handlers_mutex. Where somebody's handler lies above ours, which it may call, ours stays:
// the library that holds it is never unloaded.
void TakeAway(void (*ours)(int, siginfo_t*, void*)) {
    for (const int signal : kSignals) {
        Previous& previous = PreviousOf(signal);
        struct sigaction present;
        if (!previous.installed || sigaction(signal, nullptr, &present) != 0) {
            continue;
        }
        if (IsOurs(present, ours)) {
            sigaction(signal, &previous.action, nullptr);
            previous.installed = false;
        }
    }
}

}  // namespace

std::unique_ptr<FaultHandlers> FaultHandlers::Acquire() {
    std::lock_guard lock(handlers_mutex);
    std::unique_ptr<FaultHandlers> made(new FaultHandlers);
    if (handlers_holders++ != 0) {
        return made;
    }
    for (const int signal : kSignals) {
        Previous& previous = PreviousOf(signal);
        struct sigaction present;
        if (sigaction(signal, nullptr, &present) != 0 ||
            (previous.installed && HasHandler(present))) {
            continue;  // somebody's handler lies above ours
        }
        previous.action = present;
        struct sigaction action = {};
        action.sa_sigaction = &KernelThread::HandleSignal;
        // Whether the application's calls are interrupted stays as it was.
        action.sa_flags =
            SA_SIGINFO | SA_ONSTACK |
            (HasHandler(previous.action) ? previous.action.sa_flags & SA_RESTART : SA_RESTART);
        sigemptyset(&action.sa_mask);
        previous.installed = sigaction(signal, &action, nullptr) == 0;
    }
    return made;
}

FaultHandlers::~FaultHandlers() {
    std::lock_guard lock(handlers_mutex);
    if (--handlers_holders == 0) {
        TakeAway(&KernelThread::HandleSignal);
    }
}

}  // namespace fornax::hal::model
