// Kernels that fault or never end: what they lose, and what goes on.
#include "hal/model/kernel_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csetjmp>
#include <cstring>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "hal/command_stream_builder.h"
#include "hal/device.h"
#include "hal/memory.h"
#include "hal/model/worker_pool.h"

#if defined(__clang__)
#define FORNAX_NO_CHECKS __attribute__((no_sanitize("address", "undefined", "thread")))
#else
#define FORNAX_NO_CHECKS __attribute__((no_sanitize_address, no_sanitize_undefined))
#endif

namespace fornax::hal::model {
namespace {

constexpr uint64_t kPatienceNs = 60'000'000'000;

// The first word of the dispatch's constants.
uint64_t Constant(const DispatchFrame* frame) {
    uint64_t value;
    std::memcpy(&value, frame->push_constants, sizeof(value));
    return value;
}

FORNAX_NO_CHECKS void WriteTo(const DispatchFrame* frame,
                              WorkerFrame* worker,
                              uint64_t first,
                              uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
        worker->workgroup = i;
        if (i == 7) {
            *reinterpret_cast<volatile uint32_t*>(Constant(frame)) = 1;
        }
    }
}

FORNAX_NO_CHECKS void ReadFrom(const DispatchFrame* frame, WorkerFrame*, uint64_t, uint64_t) {
    (void)*reinterpret_cast<volatile uint32_t*>(Constant(frame));
}

[[maybe_unused]] FORNAX_NO_CHECKS void Endless(const DispatchFrame*,
                                               WorkerFrame*,
                                               uint64_t,
                                               uint64_t) {
    volatile uint64_t sink = 0;
    for (;;) {
        sink = sink + 1;
    }
}

void Nothing(const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {}

struct Client {
    explicit Client(uint64_t watchdog_ms = 60'000, uint32_t workers = 3)
        : device(*CreateDevice("model", {.worker_count = workers, .watchdog_ms = watchdog_ms})),
          queue(*device->CreateQueue()),
          done(*device->CreateTimeline(0)) {}

    // Runs the kernel and returns how the wait for it ended.
    Status Run(KernelEntry entry,
               uint32_t workgroups,
               uint64_t constant = 0,
               bool interruptible = true) {
        CommandStreamBuilder builder;
        builder.Bind(*device->CreateExecutable(
                         {.entry = entry, .interruptible = interruptible, .name = "tested"}),
                     {}, {});
        builder.Constants(&constant, sizeof(constant));
        builder.Dispatch({workgroups, 1, 1});
        const auto stream = *builder.Finish();
        const TimelinePoint signal[] = {{done, ++value}};
        const Status status = queue->Submit({.streams = {&stream, 1}, .signals = signal});
        return status.ok() ? done->Wait(value, kPatienceNs) : status;
    }

    std::shared_ptr<Device> device;
    std::shared_ptr<Queue> queue;
    std::shared_ptr<Timeline> done;
    uint64_t value = 0;
};

// A page that may not be touched.
class ForbiddenPage {
  public:
    ForbiddenPage()
        : page_(mmap(nullptr, kMemoryPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
    ~ForbiddenPage() { munmap(page_, kMemoryPageBytes); }
    uint64_t address() const { return reinterpret_cast<uint64_t>(page_) + 64; }

  private:
    void* page_;
};

void ExpectLost(const Status& status, const char* text) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kDeviceLost);
    EXPECT_NE(status.error().message.find(text), std::string::npos) << status.error().message;
}

TEST(KernelGuard, FaultLosesOneDevice) {
    const ForbiddenPage page;
    Client other;
    ASSERT_TRUE(other.Run(&Nothing, 100).ok());
    Client client;
    EXPECT_FALSE(client.device->fault());
    ExpectLost(client.Run(&WriteTo, 100, page.address()), "wrote to the address");
    EXPECT_EQ(client.queue->Submit({}).error().code, ErrorCode::kDeviceLost);

    const auto report = client.device->fault();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->kind, KernelFault::kTrap);
    EXPECT_EQ(report->access, FaultReport::Access::kWrite);
    EXPECT_EQ(report->address, page.address());
    EXPECT_EQ(report->address_bytes, 1u);
    EXPECT_NE(report->instruction_address, 0u);
    EXPECT_EQ(report->workgroup, (std::array<uint32_t, 3>{7, 0, 0}));
    EXPECT_EQ(report->kernel, "tested");
    EXPECT_NE(report->message.find("workgroup (7, 0, 0)"), std::string::npos) << report->message;

    EXPECT_TRUE(other.Run(&Nothing, 100).ok());
    EXPECT_FALSE(other.device->fault());
}

TEST(KernelGuard, ReadsAreToldFromWrites) {
    const ForbiddenPage page;
    Client client;
    ExpectLost(client.Run(&ReadFrom, 1, page.address()), "read from the address");
    EXPECT_EQ(client.device->fault()->access, FaultReport::Access::kRead);
}

#if defined(__x86_64__)
TEST(KernelGuard, AddressesOutsideOfAnyRange) {
    Client client;
    ExpectLost(client.Run(&ReadFrom, 1, uint64_t{1} << 60), "no memory can have");
    EXPECT_EQ(client.device->fault()->address_bytes, 0u);
}

// Imported memory is the application's, which may take it away: whatever touches it, the process
// goes on.
TEST(KernelGuard, TransfersOfMemoryThatIsGone) {
    using Record = std::function<void(CommandStreamBuilder&, uint64_t gone, uint64_t here)>;
    const Record records[] = {
        [](auto& builder, uint64_t gone, uint64_t here) { builder.Copy(gone, here, 64); },
        [](auto& builder, uint64_t gone, uint64_t here) { builder.Copy(here, gone, 64); },
        [](auto& builder, uint64_t gone, uint64_t) { builder.Fill(gone, 64, 7); },
        [](auto& builder, uint64_t gone, uint64_t) {
            const std::array<std::byte, 100> data = {};
            builder.Update(gone, data);
        },
        [](auto& builder, uint64_t gone, uint64_t) { builder.CopyIndirect(gone, 1, 24); },
        [](auto& builder, uint64_t gone, uint64_t here) {
            builder.CopyRowsIndirect({.source = gone, .box = here, .destination = here});
        },
        [](auto& builder, uint64_t gone, uint64_t here) {
            builder.CopyRowsIndirect({.source = here, .box = gone, .destination = here});
        },
        [](auto& builder, uint64_t gone, uint64_t) { builder.BeginCondition(gone, false); },
        [](auto& builder, uint64_t gone, uint64_t here) {
            builder.CopyRows({.source = here,
                              .destination = gone,
                              .destination_row_pitch = 8,
                              .row_bytes = 4,
                              .rows = 4,
                              .slices = 1});
        },
    };
    for (const Record& record : records) {
        void* page = mmap(nullptr, kMemoryPageBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(page, MAP_FAILED);
        Client client;
        const auto imported = client.device->ImportHostMemory(page, kMemoryPageBytes);
        const auto here = client.device->AllocateMemory(4096);
        ASSERT_TRUE(imported.ok() && here.ok());
        mprotect(page, kMemoryPageBytes, PROT_NONE);
        CommandStreamBuilder builder;
        record(builder, (*imported)->address(), (*here)->address());
        const auto stream = *builder.Finish();
        const TimelinePoint signal[] = {{client.done, 1}};
        ASSERT_TRUE(client.queue->Submit({.streams = {&stream, 1}, .signals = signal}).ok());
        ExpectLost(client.done->Wait(1, kPatienceNs), "a transfer was stopped");
        munmap(page, kMemoryPageBytes);
    }
    Client other;
    EXPECT_TRUE(other.Run(&Nothing, 100).ok());
}

TEST(KernelGuard, ArithmeticAndUnknownInstructions) {
    Client divides;
    const KernelEntry divide = [](const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {
        asm volatile("xorl %%ecx, %%ecx; movl $1, %%eax; cltd; idivl %%ecx"
                     :
                     :
                     : "eax", "ecx", "edx", "cc");
    };
    ExpectLost(divides.Run(divide, 1), "no result");
    Client unknown;
    const KernelEntry ud2 = [](const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {
        asm volatile("ud2");
    };
    ExpectLost(unknown.Run(ud2, 1), "does not have");
}
#endif

#ifndef FORNAX_THREAD_SANITIZER

TEST(KernelGuard, EndlessKernelsLoseOneDevice) {
    Client other(50);
    // One workgroup, one worker, and all workers at once.
    for (const auto& [workgroups, workers] : {std::pair{1u, 3u}, {100u, 1u}, {1'000u, 3u}}) {
        Client client(50, workers);
        ExpectLost(client.Run(&Endless, workgroups), "more than 50 ms");
        ASSERT_TRUE(client.device->fault());
        EXPECT_EQ(client.device->fault()->kind, KernelFault::kWatchdog);
        EXPECT_TRUE(other.Run(&Nothing, 1'000).ok());
    }
}

TEST(KernelGuard, LongGridsThatGoOnAreLeftAlone) {
    // Each workgroup takes a part of the watchdog's time, all together several times as much.
    const KernelEntry slow = [](const DispatchFrame*, WorkerFrame* worker, uint64_t first,
                                uint64_t count) {
        for (uint64_t i = first; i < first + count; ++i) {
            std::atomic_ref(worker->workgroup).store(i);
            timespec begin;
            timespec now;
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
            do {
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
            } while ((now.tv_sec - begin.tv_sec) * 1'000'000'000 + now.tv_nsec - begin.tv_nsec <
                     20'000'000);
        }
    };
    Client client(80, 1);
    EXPECT_TRUE(client.Run(slow, 25).ok());
}

TEST(KernelGuard, TimeWithoutAProcessorDoesNotCount) {
    const KernelEntry sleeps = [](const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {
        usleep(400'000);
    };
    Client client(50);
    EXPECT_TRUE(client.Run(sleeps, 1).ok());
}

TEST(KernelGuard, OthersAreAskedToReturn) {
    const KernelEntry obedient = [](const DispatchFrame*, WorkerFrame* worker, uint64_t, uint64_t) {
        while (std::atomic_ref(worker->stop_request).load() == 0) {
        }
    };
    Client client(50);
    ExpectLost(client.Run(obedient, 1, 0, /*interruptible=*/false), "more than 50 ms");
}

TEST(KernelGuard, WhoWaitsForAFaultyWorkgroupIsReleased) {
    // All wait for workgroup 7, which faults.
    const KernelEntry waits = [](const DispatchFrame* frame, WorkerFrame* worker, uint64_t first,
                                 uint64_t count) {
        if (first <= 7 && 7 < first + count) {
            WriteTo(frame, worker, 7, 1);
        }
        if (first + count > 7) {
            Endless(frame, worker, first, count);
        }
    };
    const ForbiddenPage page;
    Client client(0);  // without a watchdog, too
    const auto begin = std::chrono::steady_clock::now();
    ExpectLost(client.Run(waits, 100, page.address()), "wrote to the address");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

#endif

// One thread and one worker survive any number of faults.
TEST(KernelGuard, FaultsLeaveNothingBehind) {
    const auto handlers = FaultHandlers::Acquire();
    const ForbiddenPage page;
    const uint64_t address = page.address();
    Worker worker(0);
    ASSERT_TRUE(worker.Prepare(0, 0).ok());
    DispatchFrame frame;
    frame.push_constants = &address;
    for (int i = 0; i < 2'000; ++i) {
        worker.frame().fault = 0;
        worker.guard().Call({.entry = &WriteTo,
                             .dispatch = &frame,
                             .first_workgroup = 0,
                             .count = 20,
                             .interruptible = true},
                            worker.frame());
        ASSERT_EQ(worker.frame().fault, static_cast<uint32_t>(KernelFault::kTrap));
        ASSERT_EQ(worker.frame().workgroup, 7u);
        worker.frame().fault = 0;
        worker.guard().Call({.entry = &Nothing,
                             .dispatch = &frame,
                             .first_workgroup = 0,
                             .count = 20,
                             .interruptible = true},
                            worker.frame());
        ASSERT_EQ(worker.frame().fault, 0u);
    }
}

sigjmp_buf application_jump;
volatile int application_faults = 0;

void ApplicationHandler(int) {
    application_faults = application_faults + 1;
    siglongjmp(application_jump, 1);
}

FORNAX_NO_CHECKS void Touch(uint64_t address) {
    *reinterpret_cast<volatile uint32_t*>(address) = 1;
}

TEST(KernelGuard, ApplicationsKeepTheirHandlers) {
    const ForbiddenPage page;
    struct sigaction before;
    struct sigaction mine = {};
    mine.sa_handler = &ApplicationHandler;
    ASSERT_EQ(sigaction(SIGSEGV, &mine, &before), 0);
    application_faults = 0;
    {
        Client client;
        ASSERT_TRUE(client.Run(&Nothing, 1).ok());
        if (sigsetjmp(application_jump, 1) == 0) {
            Touch(page.address());
        }
        EXPECT_EQ(application_faults, 1);
        ExpectLost(client.Run(&WriteTo, 100, page.address()), "wrote to the address");
        EXPECT_EQ(application_faults, 1);
    }
    struct sigaction after;
    ASSERT_EQ(sigaction(SIGSEGV, &before, &after), 0);
    EXPECT_EQ(after.sa_handler, &ApplicationHandler) << "not put back";
}

TEST(KernelGuard, HandlersPutOnTopStay) {
    const ForbiddenPage page;
    struct sigaction before;
    ASSERT_EQ(sigaction(SIGSEGV, nullptr, &before), 0);
    struct sigaction mine = {};
    mine.sa_handler = &ApplicationHandler;
    {
        Client client;
        ASSERT_TRUE(client.Run(&Nothing, 1).ok());
        ASSERT_EQ(sigaction(SIGSEGV, &mine, nullptr), 0);
    }
    struct sigaction after;
    ASSERT_EQ(sigaction(SIGSEGV, nullptr, &after), 0);
    EXPECT_EQ(after.sa_handler, &ApplicationHandler);
    // A handler that passes on what it does not know reaches ours. When all are taken away, the
    // next device brings it again.
    ASSERT_EQ(sigaction(SIGSEGV, &before, nullptr), 0);
    Client client;
    ExpectLost(client.Run(&WriteTo, 100, page.address()), "wrote to the address");
}

// What nobody handles ends the process as it always did.
TEST(KernelGuardDeathTest, FaultsOfTheApplicationAreItsOwn) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const ForbiddenPage page;
    EXPECT_DEATH(
        {
            Client client;
            (void)client.Run(&Nothing, 1);
            signal(SIGSEGV, SIG_DFL);
            Client again;
            (void)again.Run(&Nothing, 1);
            Touch(page.address());
        },
        "");
}

}  // namespace
}  // namespace fornax::hal::model
