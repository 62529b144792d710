// The memory planner's invariants, on small cases by hand and on many random ones by brute force.
#include "compiler/legacy_graph/memory_planner.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace fornax::legacy_graph {
namespace {

using Buffers = std::vector<BufferLifetime>;

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

// The bytes in use at every step, counted one step at a time.
uint64_t SlowPeak(const Buffers& buffers, uint64_t alignment) {
    uint32_t last = 0;
    for (const BufferLifetime& buffer : buffers) {
        last = std::max(last, buffer.last_step);
    }
    uint64_t peak = 0;
    for (uint32_t step = 0; step <= last; ++step) {
        uint64_t live = 0;
        for (const BufferLifetime& buffer : buffers) {
            if (buffer.first_step <= step && step <= buffer.last_step) {
                live += AlignUp(buffer.size_bytes, alignment);
            }
        }
        peak = std::max(peak, live);
    }
    return peak;
}

void ExpectValid(const Buffers& buffers, const MemoryPlan& plan, uint64_t alignment) {
    ASSERT_EQ(plan.offsets.size(), buffers.size());
    uint64_t sum = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
        EXPECT_EQ(plan.offsets[i] % alignment, 0u);
        EXPECT_LE(plan.offsets[i] + buffers[i].size_bytes, plan.total_bytes);
        sum += AlignUp(buffers[i].size_bytes, alignment);
        for (size_t j = 0; j < i; ++j) {
            const bool at_one_time = buffers[i].first_step <= buffers[j].last_step &&
                                     buffers[j].first_step <= buffers[i].last_step;
            const bool share_bytes = plan.offsets[i] < plan.offsets[j] + buffers[j].size_bytes &&
                                     plan.offsets[j] < plan.offsets[i] + buffers[i].size_bytes;
            EXPECT_FALSE(at_one_time && share_bytes) << "buffers " << j << " and " << i;
        }
    }
    EXPECT_LE(plan.total_bytes, sum);
    EXPECT_GE(plan.total_bytes, SlowPeak(buffers, alignment));
}

TEST(MemoryPlanner, NothingNeedsNothing) {
    EXPECT_EQ(PlanMemory({}, 256).total_bytes, 0u);
    EXPECT_EQ(PeakLiveBytes({}, 256), 0u);
    const Buffers empty = {{0, 0, 9}};
    EXPECT_EQ(PlanMemory(empty, 256).total_bytes, 0u);
}

TEST(MemoryPlanner, BuffersOneAfterTheOtherShareTheirPlace) {
    const Buffers buffers = {{100, 0, 1}, {100, 2, 3}, {100, 4, 4}};
    const MemoryPlan plan = PlanMemory(buffers, 64);
    EXPECT_EQ(plan.offsets, (std::vector<uint64_t>{0, 0, 0}));
    EXPECT_EQ(plan.total_bytes, 128u);
}

TEST(MemoryPlanner, SharedStepKeepsBuffersApart) {
    // The second is written in the step in which the first is read.
    const Buffers buffers = {{64, 0, 1}, {64, 1, 2}};
    EXPECT_EQ(PlanMemory(buffers, 64).total_bytes, 128u);
}

TEST(MemoryPlanner, ChainOfLayersNeedsTwoPlaces) {
    Buffers buffers;
    for (uint32_t i = 0; i < 50; ++i) {
        buffers.push_back({1024, i, i + 1});
    }
    EXPECT_EQ(PlanMemory(buffers, 256).total_bytes, 2048u);
}

TEST(MemoryPlanner, SmallBufferTakesTheSmallestGap) {
    // At step 2 the places of the second (300) and of the fourth (100) are free, between the
    // others.
    const Buffers buffers = {{400, 0, 2}, {300, 0, 1}, {250, 0, 2},
                             {100, 0, 1}, {95, 0, 2},  {90, 2, 2}};
    const MemoryPlan plan = PlanMemory(buffers, 1);
    EXPECT_EQ(plan.offsets[5], plan.offsets[3]);
    ExpectValid(buffers, plan, 1);
}

TEST(MemoryPlanner, RandomBuffersKeepTheInvariants) {
    std::mt19937 generator(1);
    auto random = [&](uint32_t bound) { return static_cast<uint32_t>(generator() % bound); };
    for (int round = 0; round < 2000; ++round) {
        Buffers buffers;
        const uint32_t count = 1 + random(24), steps = 1 + random(12);
        for (uint32_t i = 0; i < count; ++i) {
            const uint32_t first = random(steps);
            buffers.push_back(
                {random(4) == 0 ? random(10) : random(5000), first, first + random(steps - first)});
        }
        const uint64_t alignment = uint64_t{1} << random(9);
        const MemoryPlan plan = PlanMemory(buffers, alignment);
        ExpectValid(buffers, plan, alignment);
        EXPECT_EQ(PeakLiveBytes(buffers, alignment), SlowPeak(buffers, alignment));
        EXPECT_EQ(PlanMemory(buffers, alignment).offsets, plan.offsets) << "not deterministic";
        if (HasFailure()) {
            FAIL() << "in round " << round;
        }
    }
}

TEST(MemoryPlanner, WasteStaysSmallOnNetworkShapes) {
    // Layers with skip connections of random length, as in residual networks.
    std::mt19937 generator(2);
    double worst = 0;
    for (int round = 0; round < 100; ++round) {
        Buffers buffers;
        for (uint32_t i = 0; i < 60; ++i) {
            buffers.push_back({(1 + generator() % 16) * 4096, i,
                               i + 1 + (generator() % 4 == 0 ? uint32_t(generator() % 5) : 0)});
        }
        const double waste = static_cast<double>(PlanMemory(buffers, 256).total_bytes) /
                             static_cast<double>(PeakLiveBytes(buffers, 256));
        worst = std::max(worst, waste);
    }
    EXPECT_LT(worst, 1.35);
}

}  // namespace
}  // namespace fornax::legacy_graph
