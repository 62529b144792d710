// Queues and timelines: order, waits, signals, stopping.
#include <chrono>
#include <thread>

#include "hal/conformance/conformance.h"

namespace fornax::hal::conformance {
namespace {

using std::chrono::milliseconds;

HAL_CASE(TimelineHostSignalAndWait) {
    const auto timeline = bench.NewTimeline(5);
    EXPECT_EQ(timeline->value(), 5u);
    EXPECT_TRUE(timeline->Wait(5, 0).ok());
    const Status late = timeline->Wait(6, 0);
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code, ErrorCode::kTimeout);
    EXPECT_EQ(timeline->Wait(6, 2'000'000).error().code, ErrorCode::kTimeout);
    EXPECT_TRUE(timeline->Signal(7).ok());
    EXPECT_TRUE(timeline->Wait(6, 0).ok());
    EXPECT_EQ(timeline->Signal(7).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(timeline->Signal(3).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(timeline->value(), 7u);
}

HAL_CASE(TimelineWaitAnyAndAll) {
    const auto a = bench.NewTimeline();
    const auto b = bench.NewTimeline();
    const TimelinePoint points[] = {{a, 1}, {b, 1}};
    EXPECT_EQ(WaitAny(points, 0).error().code, ErrorCode::kTimeout);
    std::thread signaller([&] {
        std::this_thread::sleep_for(milliseconds(5));
        EXPECT_TRUE(b->Signal(1).ok());
    });
    EXPECT_TRUE(WaitAny(points, kPatienceNs).ok());
    signaller.join();
    EXPECT_EQ(WaitAll(points, 1'000'000).error().code, ErrorCode::kTimeout);
    EXPECT_TRUE(a->Signal(9).ok());
    EXPECT_TRUE(WaitAll(points, 0).ok());
    EXPECT_TRUE(WaitAll({}, 0).ok());
    EXPECT_TRUE(WaitAny({}, 0).ok());
}

HAL_CASE(SubmitOfNothingEnds) {
    ASSERT_TRUE(bench.queue().Submit({}).ok());
    EXPECT_TRUE(bench.queue().WaitIdle(kPatienceNs).ok());
    const auto done = bench.NewTimeline();
    ASSERT_TRUE(bench.Submit(bench.queue(), {}, {}, {{done, 4}}).ok());
    EXPECT_TRUE(done->Wait(4, kPatienceNs).ok());
}

HAL_CASE(SubmitRefusesForeignObjects) {
    Bench other(bench.backend());
    const auto foreign = other.NewTimeline();
    const auto refused = [&](std::vector<TimelinePoint> waits, std::vector<TimelinePoint> signals,
                             std::vector<std::shared_ptr<const CommandStream>> streams) {
        const Status status =
            bench.Submit(bench.queue(), std::move(waits), std::move(streams), std::move(signals));
        return !status.ok() && status.error().code == ErrorCode::kInvalidArgument;
    };
    EXPECT_TRUE(refused({{foreign, 1}}, {}, {}));
    EXPECT_TRUE(refused({}, {{foreign, 1}}, {}));
    EXPECT_TRUE(refused({{nullptr, 1}}, {}, {}));
    EXPECT_TRUE(refused({}, {}, {nullptr}));
    EXPECT_TRUE(bench.queue().Submit({}).ok());
    EXPECT_TRUE(bench.queue().WaitIdle(kPatienceNs).ok());
}

HAL_CASE(WaitBeforeSignal) {
    const auto gate = bench.NewTimeline();
    const auto done = bench.NewTimeline();
    ASSERT_TRUE(bench.Submit(bench.queue(), {{gate, 3}}, {}, {{done, 1}}).ok());
    EXPECT_EQ(done->Wait(1, 2'000'000).error().code, ErrorCode::kTimeout);
    EXPECT_EQ(bench.queue().WaitIdle(1'000'000).error().code, ErrorCode::kTimeout);
    ASSERT_TRUE(gate->Signal(2).ok());
    EXPECT_EQ(done->Wait(1, 2'000'000).error().code, ErrorCode::kTimeout);
    ASSERT_TRUE(gate->Signal(3).ok());
    EXPECT_TRUE(done->Wait(1, kPatienceNs).ok());
}

HAL_CASE(QueuesWaitForEachOther) {
    // The first queue waits for the second, which waits for the first, in turns.
    const auto second = bench.NewQueue();
    const auto ping = bench.NewTimeline();
    const auto pong = bench.NewTimeline();
    constexpr uint64_t kTurns = 200;
    for (uint64_t turn = 1; turn <= kTurns; ++turn) {
        ASSERT_TRUE(bench.Submit(bench.queue(), {{pong, turn}}, {}, {{ping, turn}}).ok());
    }
    for (uint64_t turn = 1; turn <= kTurns; ++turn) {
        ASSERT_TRUE(bench.Submit(*second, {{ping, turn - 1}}, {}, {{pong, turn}}).ok());
    }
    EXPECT_TRUE(ping->Wait(kTurns, kPatienceNs).ok());
    EXPECT_EQ(pong->value(), kTurns);
}

HAL_CASE(SubmitNeverBlocks) {
    // Far more than any ring holds, all behind a wait that only this thread will satisfy.
    const auto gate = bench.NewTimeline();
    const auto done = bench.NewTimeline();
    constexpr uint64_t kSubmissions = 2'000;
    ASSERT_TRUE(bench.Submit(bench.queue(), {{gate, 1}}, {}, {}).ok());
    for (uint64_t i = 1; i <= kSubmissions; ++i) {
        ASSERT_TRUE(bench.Submit(bench.queue(), {}, {}, {{done, i}}).ok());
    }
    EXPECT_EQ(done->value(), 0u);
    ASSERT_TRUE(gate->Signal(1).ok());
    EXPECT_TRUE(done->Wait(kSubmissions, kPatienceNs).ok());
}

HAL_CASE(SubmitLargerThanARing) {
    const auto gate = bench.NewTimeline();
    const auto done = bench.NewTimeline();
    std::vector<TimelinePoint> waits(1'000, {gate, 1});
    std::vector<TimelinePoint> signals;
    for (uint64_t i = 1; i <= 1'000; ++i) {
        signals.push_back({done, i});
    }
    CommandStreamBuilder builder;
    builder.Barrier();
    const auto stream = builder.Finish();
    ASSERT_TRUE(stream.ok());
    ASSERT_TRUE(bench.Submit(bench.queue(), waits, {3'000, *stream}, signals).ok());
    ASSERT_TRUE(gate->Signal(1).ok());
    EXPECT_TRUE(done->Wait(1'000, kPatienceNs).ok());
    EXPECT_TRUE(bench.queue().WaitIdle(kPatienceNs).ok());
}

HAL_CASE(SubmitFromManyThreads) {
    constexpr uint64_t kThreads = 4;
    constexpr uint64_t kEach = 500;
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
            const auto done = bench.NewTimeline();
            for (uint64_t value = 1; value <= kEach; ++value) {
                ASSERT_TRUE(bench.Submit(bench.queue(), {}, {}, {{done, value}}).ok());
                if (value % 16 == 0) {
                    ASSERT_TRUE(done->Wait(value, kPatienceNs).ok());
                }
            }
            EXPECT_TRUE(done->Wait(kEach, kPatienceNs).ok());
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_TRUE(bench.queue().WaitIdle(kPatienceNs).ok());
    EXPECT_EQ(bench.device().counters().submissions, kThreads * kEach);
}

HAL_CASE(SubmissionsRetainAndRelease) {
    auto token = std::make_shared<int>(1);
    const auto gate = bench.NewTimeline();
    const auto done = bench.NewTimeline();
    {
        auto executable = bench.NewExecutable(
            {.entry = [](const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t) {},
             .code = token});
        CommandStreamBuilder builder;
        builder.Bind(executable, {}, {});
        builder.Dispatch({1, 1, 1});
        const auto stream = builder.Finish();
        ASSERT_TRUE(stream.ok());
        ASSERT_TRUE(bench.Submit(bench.queue(), {{gate, 1}}, {*stream}, {{done, 1}}).ok());
    }
    EXPECT_EQ(token.use_count(), 2) << "the pending submission keeps the code";
    ASSERT_TRUE(gate->Signal(1).ok());
    ASSERT_TRUE(done->Wait(1, kPatienceNs).ok());
    EXPECT_EQ(token.use_count(), 1) << "streams are released before the signal";
}

HAL_CASE(StopWithAnUnsatisfiedWait) {
    const auto gate = bench.NewTimeline();
    const auto done = bench.NewTimeline();
    ASSERT_TRUE(bench.Submit(bench.queue(), {{gate, 1}}, {}, {{done, 1}}).ok());
    for (int i = 0; i < 1'000; ++i) {
        ASSERT_TRUE(bench.Submit(bench.queue(), {}, {}, {{done, 1}}).ok());
    }
    // Somebody waits for what will not come, and must be told.
    std::thread waiter(
        [&] { EXPECT_EQ(done->Wait(1, kPatienceNs).error().code, ErrorCode::kDeviceLost); });
    std::this_thread::sleep_for(milliseconds(2));
    bench.Close();
    waiter.join();
}

HAL_CASE(StopWithAnUnsatisfiedEvent) {
    const auto cell = bench.Allocate(64);
    CommandStreamBuilder builder;
    builder.WaitEvent(cell->address());
    const auto stream = builder.Finish();
    ASSERT_TRUE(bench.Submit(bench.queue(), {}, {*stream}, {}).ok());
    std::this_thread::sleep_for(milliseconds(2));
    bench.Close();
}

HAL_CASE(LostDeviceTellsEverybody) {
    std::atomic<int> calls = 0;
    std::string message;
    Bench lost(bench.backend(), {.on_lost = [&](const std::string& text) {
                   ++calls;
                   message = text;
               }});
    const auto gate = lost.NewTimeline();
    ASSERT_TRUE(lost.Submit(lost.queue(), {{gate, 1}}, {}, {}).ok());
    std::thread waiter(
        [&] { EXPECT_EQ(gate->Wait(1, kPatienceNs).error().code, ErrorCode::kDeviceLost); });
    EXPECT_FALSE(lost.device().lost());
    EXPECT_TRUE(lost.device().status().ok());
    lost.device().Lose("The first reason.");
    lost.device().Lose("The second reason.");
    waiter.join();
    EXPECT_TRUE(lost.device().lost());
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(message, "The first reason.");
    EXPECT_EQ(lost.device().status().error().message, "The first reason.");
    EXPECT_EQ(lost.queue().Submit({}).error().code, ErrorCode::kDeviceLost);
    EXPECT_EQ(lost.queue().WaitIdle(kPatienceNs).error().code, ErrorCode::kDeviceLost);
    // What was reached before stays reached.
    EXPECT_TRUE(gate->Wait(0, 0).ok());
}

}  // namespace
}  // namespace fornax::hal::conformance
