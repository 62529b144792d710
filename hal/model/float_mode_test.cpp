// Kernels find their own floating-point mode, whatever mode the threads of the application are in.
#include "hal/model/float_mode.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cfenv>

#include "hal/command_stream_builder.h"
#include "hal/device.h"

namespace fornax::hal {
namespace {

// By arithmetic, because std::fegetround asks the x87 unit, which kernels do not use.
bool RoundsUpward() {
    volatile float small = 0x1p-30F;
    return 1.0F + small > 1.0F;
}

std::atomic<uint64_t> workgroups_seen;
std::atomic<uint64_t> other_modes_seen;

void LookAtMode(const DispatchFrame*, WorkerFrame* worker, uint64_t first, uint64_t count) {
    // Long enough for more than one worker to take part.
    volatile uint64_t sink = 0;
    for (uint64_t i = first; i < first + count; ++i) {
        worker->workgroup = i;
        for (uint64_t j = 0; j < 1'000; ++j) {
            sink = sink + j;
        }
    }
    workgroups_seen += count;
    other_modes_seen += RoundsUpward() ? 1 : 0;
}

// A thread starts in the mode of the thread that made it: the queue's in that of the application,
// and the workers' in that of the queue's.
TEST(FloatMode, IsNotThatOfTheApplication) {
    const int before = std::fegetround();
    ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
    for (const uint32_t workers : {1u, 4u}) {
        workgroups_seen = 0;
        other_modes_seen = 0;
        const auto device = *CreateDevice("model", {.worker_count = workers});
        const auto queue = *device->CreateQueue();
        const auto done = *device->CreateTimeline(0);
        CommandStreamBuilder builder;
        builder.Bind(*device->CreateExecutable({.entry = &LookAtMode,
                                                .independent_workgroups = true,
                                                .name = "looks at its mode"}),
                     {}, {});
        builder.Dispatch(std::array<uint32_t, 3>{1, 1, 1});
        builder.Dispatch(std::array<uint32_t, 3>{5'000, 1, 1});
        const auto stream = *builder.Finish();
        const TimelinePoint signal[] = {{done, 1}};
        EXPECT_TRUE(queue->Submit({.streams = {&stream, 1}, .signals = signal}).ok());
        EXPECT_TRUE(queue->WaitIdle(kWaitForever).ok());
        EXPECT_EQ(workgroups_seen, 5'001u);
        EXPECT_EQ(other_modes_seen, 0u);
    }
    EXPECT_TRUE(RoundsUpward());
    std::fesetround(before);
}

}  // namespace
}  // namespace fornax::hal
