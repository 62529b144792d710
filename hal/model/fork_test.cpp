// A child process and a device of its parent.
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <thread>

#include "base/sanitized.h"
#include "base/test_threads.h"
#include "hal/command_stream_builder.h"
#include "hal/device.h"

namespace fornax::hal {
namespace {

#ifndef FORNAX_THREAD_SANITIZER

void SpinKernel(const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t count) {
    volatile uint64_t sink = 0;
    for (uint64_t i = 0; i < count * 10'000; ++i) {
        sink = i;
    }
    (void)sink;
}

struct Client {
    explicit Client(const std::string& backend)
        : device(*CreateDevice(backend, {.worker_count = 3})) {}

    std::shared_ptr<Device> device;
    std::shared_ptr<Queue> queue = *device->CreateQueue();
    std::shared_ptr<Timeline> done = *device->CreateTimeline(0);

    bool Run(uint64_t value) {
        CommandStreamBuilder builder;
        builder.Bind(*device->CreateExecutable({.entry = &SpinKernel}), {}, {});
        builder.Dispatch({100, 1, 1});
        const auto stream = *builder.Finish();
        const TimelinePoint signal[] = {{done, value}};
        return queue->Submit({.streams = {&stream, 1}, .signals = signal}).ok() &&
               done->Wait(value, 30'000'000'000).ok();
    }
};

// Returns the number of the first check that failed, 0 for none.
int ChildChecks(std::unique_ptr<Client> inherited, const std::string& backend) {
    const auto lost = [](const Status& status) {
        return !status.ok() && status.error().code == ErrorCode::kDeviceLost;
    };
    if (!inherited->device->lost()) {
        return 1;
    }
    if (!lost(inherited->queue->Submit({}))) {
        return 2;
    }
    if (!lost(inherited->done->Wait(99, 1'000'000'000))) {
        return 3;
    }
    if (!lost(inherited->done->Signal(99))) {
        return 4;
    }
    if (!lost(inherited->queue->WaitIdle(kWaitForever))) {
        return 5;
    }
    inherited.reset();
    Client own(backend);
    if (!own.Run(1)) {
        return 6;
    }
    return 0;
}

class Fork : public testing::TestWithParam<std::string> {};

TEST_P(Fork, ChildIsToldAndMayHaveItsOwnDevice) {
    for (int round = 0; round < 10; ++round) {
        auto client = std::make_unique<Client>(GetParam());
        ASSERT_TRUE(client->Run(1));
        // Threads are at work while the process forks.
        const TimelinePoint signal[] = {{client->done, 2}};
        CommandStreamBuilder builder;
        builder.Bind(*client->device->CreateExecutable({.entry = &SpinKernel}), {}, {});
        builder.Dispatch({500, 1, 1});
        const auto stream = *builder.Finish();
        ASSERT_TRUE(client->queue->Submit({.streams = {&stream, 1}, .signals = signal}).ok());
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(20);  // a child that hangs dies of it
            _exit(ChildChecks(std::move(client), GetParam()));
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
        EXPECT_EQ(WEXITSTATUS(status), 0);
        EXPECT_TRUE(client->done->Wait(2, 30'000'000'000).ok());
        EXPECT_TRUE(client->Run(3));
    }
}

INSTANTIATE_TEST_SUITE_P(Backends, Fork, testing::Values("model", "null"), [](const auto& info) {
    return info.param;
});

#endif

TEST(DeviceThreads, DevicesWithoutWorkHaveNoThreads) {
    std::thread([] {}).join();  // ThreadSanitizer starts one of its own with the first
    const int before = CountThreads();
    auto device = *CreateDevice("model", {.worker_count = 8});
    auto queue = *device->CreateQueue();
    auto memory = *device->AllocateMemory(1 << 20);
    EXPECT_EQ(CountThreads(), before);
    ASSERT_TRUE(queue->Submit({}).ok());
    ASSERT_TRUE(queue->WaitIdle().ok());
    EXPECT_EQ(CountThreads(), before + 1) << "the workers start with the first large grid";
}

}  // namespace
}  // namespace fornax::hal
