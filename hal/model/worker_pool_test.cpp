// Every workgroup once, whatever the numbers of workers and workgroups.
#include "hal/model/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace fornax::hal::model {
namespace {

// Counts each workgroup in the array that the frame's constants point to.
void CountKernel(const DispatchFrame* frame, WorkerFrame*, uint64_t first, uint64_t count) {
    auto* counts = static_cast<uint32_t*>(const_cast<void*>(frame->push_constants));
    for (uint64_t i = first; i < first + count; ++i) {
        std::atomic_ref<uint32_t>(counts[i]).fetch_add(1, std::memory_order_relaxed);
    }
}

TEST(WorkerPool, RunsEveryWorkgroupOnce) {
    const auto hub = std::make_shared<WaitHub>(nullptr);
    for (const uint32_t workers : {1u, 2u, 3u, 8u, 40u}) {
        WorkerPool pool(workers, hub);
        Worker self(0);
        // A cost that makes every grid be published at once, and none.
        for (const uint32_t pretended_cost_ns : {1'000'000u, 1u}) {
            for (const uint64_t count : {1, 2, 3, 7, 64, 1'000, 30'001}) {
                std::vector<uint32_t> counts(count, 0);
                DispatchFrame frame;
                frame.push_constants = counts.data();
                std::atomic<uint32_t> cost_ns{pretended_cost_ns};
                const auto result = pool.Run(self, {.entry = &CountKernel,
                                                    .frame = &frame,
                                                    .workgroup_count = count,
                                                    .workgroup_cost_ns = &cost_ns});
                ASSERT_TRUE(result.ok());
                EXPECT_EQ(result->fault, 0u);
                EXPECT_TRUE(std::ranges::all_of(counts, [](uint32_t n) { return n == 1; }))
                    << workers << " workers, " << count << " workgroups";
                if (workers > 1 && count > 1 && pretended_cost_ns > 1) {
                    EXPECT_TRUE(result->was_parallel);
                }
            }
        }
    }
}

TEST(WorkerPool, ManySmallPublishedGrids) {
    const auto hub = std::make_shared<WaitHub>(nullptr);
    WorkerPool pool(4, hub);
    Worker self(0);
    std::vector<uint32_t> counts(8, 0);
    DispatchFrame frame;
    frame.push_constants = counts.data();
    constexpr uint32_t kRounds = 5'000;
    for (uint32_t round = 0; round < kRounds; ++round) {
        std::atomic<uint32_t> cost_ns{100'000};
        ASSERT_TRUE(pool.Run(self, {.entry = &CountKernel,
                                    .frame = &frame,
                                    .workgroup_count = counts.size(),
                                    .workgroup_cost_ns = &cost_ns})
                        .ok());
        ASSERT_TRUE(std::ranges::all_of(counts, [&](uint32_t n) { return n == round + 1; }));
    }
}

TEST(WorkerPool, LearnsTheCost) {
    const auto hub = std::make_shared<WaitHub>(nullptr);
    WorkerPool pool(2, hub);
    Worker self(0);
    std::atomic<uint32_t> cost_ns{0};
    DispatchFrame frame;
    const KernelEntry slow = [](const DispatchFrame*, WorkerFrame*, uint64_t, uint64_t count) {
        const uint64_t end_ns = MonotonicNanoseconds() + count * 20'000;
        while (MonotonicNanoseconds() < end_ns) {
        }
    };
    const auto result = pool.Run(
        self,
        {.entry = slow, .frame = &frame, .workgroup_count = 50, .workgroup_cost_ns = &cost_ns});
    ASSERT_TRUE(result.ok());
    EXPECT_TRUE(result->was_parallel);
    EXPECT_GE(cost_ns.load(), 19'000u);
}

TEST(WorkerPool, FaultEndsTheGrid) {
    const auto hub = std::make_shared<WaitHub>(nullptr);
    for (const uint32_t workers : {1u, 4u}) {
        WorkerPool pool(workers, hub);
        Worker self(0);
        std::atomic<uint32_t> cost_ns{1'000'000};
        DispatchFrame frame;
        const KernelEntry faulty = [](const DispatchFrame*, WorkerFrame* worker, uint64_t first,
                                      uint64_t count) {
            if (first <= 777 && 777 < first + count) {
                worker->fault = 1;
            }
        };
        const Grid grid = {.entry = faulty,
                           .frame = &frame,
                           .workgroup_count = 1'000'000,
                           .workgroup_cost_ns = &cost_ns};
        const auto result = pool.Run(self, grid);
        ASSERT_TRUE(result.ok());
        EXPECT_EQ(result->fault, 1u);
        // The next grid does not inherit it.
        const auto clean =
            pool.Run(self, {.entry = faulty, .frame = &frame, .workgroup_count = 10});
        ASSERT_TRUE(clean.ok());
        EXPECT_EQ(clean->fault, 0u);
    }
}

}  // namespace
}  // namespace fornax::hal::model
