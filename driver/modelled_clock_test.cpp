// The modelled clock: what is replayed at once, what is left for later, and that both give the same
// times.
#include "driver/modelled_clock.h"

#include <gtest/gtest.h>

#include <string>

#include "npu/description/read.h"
#include "npu/replay/test_records.h"

namespace fornax::driver {
namespace {

class ModelledClockTest : public testing::Test {
  protected:
    const npu::Description machine_ = npu::LoadDescription("edge-4").value();
    ModelledClock clock_{machine_};

    static npu::Record Stream(uint64_t bytes) {
        return {.work = npu::StreamRecord("stream", bytes, bytes)};
    }
    std::shared_ptr<ModelledSubmission> Begun(uint64_t bytes) {
        auto submission = ModelledClock::Begin();
        clock_.Append(*submission, Stream(bytes));
        return submission;
    }
    void Run(uint64_t bytes) { clock_.Flush(Begun(bytes)); }
    uint64_t CyclesOf(uint64_t bytes) const {
        const npu::Record record = Stream(bytes);
        return npu::Replay(machine_, std::span(&record, 1)).value().total;
    }
};

TEST_F(ModelledClockTest, LeavesWhatNobodyAsksFor) {
    EXPECT_FALSE(clock_.ReplayOne());
    Run(1 << 20);
    Run(1 << 18);
    EXPECT_TRUE(clock_.ReplayOne());
    EXPECT_TRUE(clock_.ReplayOne());
    EXPECT_FALSE(clock_.ReplayOne());
    EXPECT_EQ(clock_.Now(), CyclesOf(1 << 20) + CyclesOf(1 << 18));
}

TEST_F(ModelledClockTest, TheTimeHasWhatWasLeft) {
    Run(1 << 20);
    EXPECT_EQ(clock_.Now(), CyclesOf(1 << 20));
    EXPECT_FALSE(clock_.ReplayOne());
}

TEST_F(ModelledClockTest, WritesOwedSlotsWithTheFlush) {
    Run(1 << 20);
    hal::QuerySlot begin, end;
    auto submission = ModelledClock::Begin();
    clock_.Owe(*submission, {.slot = &begin});
    clock_.Append(*submission, Stream(1 << 18));
    clock_.Owe(*submission, {.slot = &end});
    clock_.Flush(submission);
    EXPECT_FALSE(clock_.ReplayOne());  // what was left before had to come first
    EXPECT_GT(begin.value, CyclesOf(1 << 20));
    EXPECT_LT(begin.value, end.value);
    EXPECT_EQ(end.value, CyclesOf(1 << 20) + CyclesOf(1 << 18));
}

// A submission that signals in its middle is flushed there, and its later slots are not written
// with what was left of it then.
TEST_F(ModelledClockTest, SlotsWaitForTheirOwnFlush) {
    auto submission = Begun(1 << 20);
    clock_.Flush(submission);
    clock_.Append(*submission, Stream(1 << 20));
    hal::QuerySlot slot;
    clock_.Owe(*submission, {.slot = &slot});
    EXPECT_TRUE(clock_.ReplayOne());
    EXPECT_FALSE(hal::QueryAvailable(slot));
    clock_.Flush(submission);
    EXPECT_GT(slot.value, CyclesOf(1 << 20));
    EXPECT_EQ(clock_.Now(), slot.value);
}

// Two queues: what began before the other's end was flushed runs beside it.
TEST_F(ModelledClockTest, SubmissionsBeginWhereTheLastFlushEnded) {
    auto first = Begun(1 << 20), second = Begun(1 << 18);
    clock_.Flush(first);
    clock_.Flush(second);
    auto third = Begun(1 << 16);
    clock_.Flush(third);
    EXPECT_EQ(clock_.Now(), CyclesOf(1 << 20) + CyclesOf(1 << 16));
}

TEST_F(ModelledClockTest, LeavesNoMoreThanALimit) {
    constexpr int kSubmissions = 5000;
    for (int i = 0; i < kSubmissions; ++i) {
        Run(1 << 12);
    }
    int left = 0;
    while (clock_.ReplayOne()) {
        ++left;
    }
    EXPECT_EQ(left, 4096);
    EXPECT_EQ(clock_.Now(), kSubmissions * CyclesOf(1 << 12));
}

}  // namespace
}  // namespace fornax::driver
