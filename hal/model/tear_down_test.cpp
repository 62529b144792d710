// Queues and devices that end while work is under way: in bounded time, whatever the work is.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/sanitized.h"
#include "base/test_threads.h"
#include "hal/command_stream_builder.h"
#include "hal/device.h"

namespace fornax::hal {
namespace {

constexpr std::array<uint32_t, 3> kHuge = {65535, 65535, 65535};

// Some hundred nanoseconds for each workgroup.
void ShortKernel(const DispatchFrame*, WorkerFrame* worker, uint64_t first, uint64_t count) {
    volatile uint64_t sink = 0;
    for (uint64_t i = first; i < first + count; ++i) {
        worker->workgroup = i;
        for (uint64_t j = 0; j < 100; ++j) {
            sink = sink + j;
        }
    }
}

#ifndef FORNAX_THREAD_SANITIZER
void EndlessKernel(const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {
    volatile uint64_t sink = 0;
    for (;;) {
        sink = sink + 1;
    }
}
#endif

struct Work {
    KernelEntry entry = &ShortKernel;
    std::array<uint32_t, 3> workgroups = kHuge;
    bool interruptible = false;
    bool independent = true;
};

struct Client {
    explicit Client(uint32_t workers) : device(*CreateDevice("model", {.worker_count = workers})) {}

    void Submit(const Work& work) {
        CommandStreamBuilder builder;
        builder.Bind(*device->CreateExecutable({.entry = work.entry,
                                                .independent_workgroups = work.independent,
                                                .interruptible = work.interruptible,
                                                .name = "tested"}),
                     {}, {});
        builder.Dispatch(work.workgroups);
        const auto stream = *builder.Finish();
        const TimelinePoint signal[] = {{done, ++value}};
        ASSERT_TRUE(queue->Submit({.streams = {&stream, 1}, .signals = signal}).ok());
    }

    std::shared_ptr<Device> device;
    std::shared_ptr<Queue> queue = *device->CreateQueue();
    std::shared_ptr<Timeline> done = *device->CreateTimeline(0);
    uint64_t value = 0;
};

// The system counts a thread for a moment after it was joined.
bool ThreadsBecome(int count) {
    for (int i = 0; i < 10'000 && CountThreads() != count; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return CountThreads() == count;
}

// A queue that waited for the whole grid would be at it for years; ctest ends the test before.
TEST(TearDown, QueuesLeaveHugeGrids) {
    for (const uint32_t workers : {1u, 3u}) {
        for (const bool independent : {false, true}) {
            Client client(workers);
            client.Submit({.independent = independent});
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            client.queue.reset();
            EXPECT_TRUE(client.device->lost());
            const Status status = client.done->Wait(1, 0);
            EXPECT_EQ(status.error().code, ErrorCode::kDeviceLost);
            EXPECT_EQ(status.error().message,
                      "A queue was destroyed while 1 of its submissions were unfinished.");
            EXPECT_FALSE(client.device->fault()) << "no kernel did anything wrong";
        }
    }
}

// Two queues: one has the workers, and the other runs its grid alone.
TEST(TearDown, QueuesLeaveHugeGridsBesideEachOther) {
    Client client(3);
    const std::shared_ptr<Queue> first = client.queue;
    client.Submit({});
    client.queue = *client.device->CreateQueue();
    client.Submit({});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    client.queue.reset();
    EXPECT_TRUE(client.device->lost());
}

TEST(TearDown, QueuesLetShortWorkFinish) {
    for (int round = 0; round < 20; ++round) {
        Client client(3);
        client.Submit({.workgroups = {100, 1, 1}});
        ASSERT_TRUE(client.done->Wait(1, 60'000'000'000).ok());
        client.queue.reset();
        EXPECT_FALSE(client.device->lost()) << "all that was submitted had been done";
    }
}

#ifndef FORNAX_THREAD_SANITIZER
// With the watchdog's usual time, which is longer than any test.
TEST(TearDown, QueuesLeaveEndlessKernels) {
    for (const uint32_t workgroups : {1u, 100u}) {
        Client client(3);
        client.Submit(
            {.entry = &EndlessKernel, .workgroups = {workgroups, 1, 1}, .interruptible = true});
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        client.queue.reset();
        EXPECT_TRUE(client.device->lost());
    }
}
#endif

TEST(TearDown, ShutdownEndsEveryThread) {
    std::thread([] {}).join();  // ThreadSanitizer starts one of its own with the first
    const int before = CountThreads();
    for (const char* backend : {"model", "null"}) {
        for (const bool busy : {false, true}) {
            SCOPED_TRACE(testing::Message() << backend << ", busy: " << busy);
            Client client(3);
            client.device = *CreateDevice(backend, {.worker_count = 3});
            client.queue = *client.device->CreateQueue();
            client.done = *client.device->CreateTimeline(0);
            client.Submit({.workgroups = {100'000, 1, 1}});
            ASSERT_TRUE(client.done->Wait(1, 60'000'000'000).ok());
            EXPECT_GT(CountThreads(), before);
            if (busy) {
                client.Submit({});
            }
            client.device->Shutdown("The test ends it.");
            EXPECT_TRUE(ThreadsBecome(before));
            EXPECT_EQ(client.device->status().error().message, "The test ends it.");
            EXPECT_EQ(client.queue->Submit({}).error().code, ErrorCode::kDeviceLost);
            EXPECT_TRUE(ThreadsBecome(before));
            client.device->Shutdown("Once more.");
        }
    }
}

}  // namespace
}  // namespace fornax::hal
