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
                for (const bool independent : {false, true}) {
                    std::vector<uint32_t> counts(count, 0);
                    DispatchFrame frame;
                    frame.push_constants = counts.data();
                    std::atomic<uint32_t> cost_ns{pretended_cost_ns};
                    const auto result = pool.Run(self, {.entry = &CountKernel,
                                                        .frame = &frame,
                                                        .workgroup_count = count,
                                                        .workgroup_cost_ns = &cost_ns,
                                                        .independent = independent});
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
}

// What regions counted comes from all workers, and each grid begins at 0, whatever grids of other
// kernels have left.
TEST(WorkerPool, CountsOfRegionsAddUp) {
    const KernelEntry counts_itself = [](const DispatchFrame*, WorkerFrame* worker, uint64_t first,
                                         uint64_t count) {
        for (uint64_t i = first; i < first + count; ++i) {
            worker->region_counts[0] += 1;
            worker->region_counts[1] += i;
        }
    };
    const auto hub = std::make_shared<WaitHub>(nullptr);
    for (const uint32_t workers : {1u, 2u, 8u}) {
        WorkerPool pool(workers, hub);
        Worker self(0);
        for (const uint32_t pretended_cost_ns : {1'000'000u, 1u}) {
            for (const uint64_t count : {1, 3, 64, 5'000}) {
                for (const uint32_t counters : {2u, 40u, 2u}) {
                    DispatchFrame frame;
                    std::atomic<uint32_t> cost_ns{pretended_cost_ns};
                    const auto result = pool.Run(self, {.entry = counts_itself,
                                                        .frame = &frame,
                                                        .workgroup_count = count,
                                                        .region_counters = counters,
                                                        .workgroup_cost_ns = &cost_ns,
                                                        .independent = true});
                    ASSERT_TRUE(result.ok());
                    EXPECT_EQ(self.frame().region_counts[0], count);
                    EXPECT_EQ(self.frame().region_counts[1], count * (count - 1) / 2);
                }
            }
        }
    }
}

// Each workgroup waits for the one before it.
TEST(WorkerPool, WorkgroupsThatWaitForLowerOnesEnd) {
    const auto hub = std::make_shared<WaitHub>(nullptr);
    const KernelEntry chain = [](const DispatchFrame* frame, WorkerFrame*, uint64_t first,
                                 uint64_t count) {
        std::atomic_ref<uint64_t> finished(
            *static_cast<uint64_t*>(const_cast<void*>(frame->push_constants)));
        for (uint64_t i = first; i < first + count; ++i) {
            while (finished.load(std::memory_order_acquire) != i) {
                std::this_thread::yield();
            }
            finished.store(i + 1, std::memory_order_release);
        }
    };
    for (const uint32_t workers : {2u, 3u, 6u}) {
        WorkerPool pool(workers, hub);
        Worker self(0);
        // However few workers the cost promises work for, and with more ranges than cores.
        for (const uint32_t pretended_cost_ns : {100'000u, 500u}) {
            for (const bool independent : {false, true}) {
                for (int round = 0; round < 30; ++round) {
                    constexpr uint64_t kCount = 50;
                    uint64_t finished = 0;
                    DispatchFrame frame;
                    frame.push_constants = &finished;
                    std::atomic<uint32_t> cost_ns{pretended_cost_ns};
                    ASSERT_TRUE(pool.Run(self, {.entry = chain,
                                                .frame = &frame,
                                                .workgroup_count = kCount,
                                                .workgroup_cost_ns = &cost_ns,
                                                .independent = independent})
                                    .ok());
                    ASSERT_EQ(finished, kCount);
                }
            }
        }
    }
}

// Workers begin with the same part of every grid.
TEST(WorkerPool, PartsStayWithTheirWorkers) {
    const auto hub = std::make_shared<WaitHub>(nullptr);
    constexpr uint32_t kWorkers = 2;
    constexpr uint64_t kCount = 40;
    WorkerPool pool(kWorkers, hub);
    Worker self(0);
    // Who ran the first workgroup of the second half; waits for it, so that both take part.
    struct Seen {
        std::atomic<uint32_t> runner{UINT32_MAX};
    } seen;
    const KernelEntry meet = [](const DispatchFrame* frame, WorkerFrame* worker, uint64_t first,
                                uint64_t count) {
        auto& state = *static_cast<Seen*>(const_cast<void*>(frame->push_constants));
        if (first <= kCount / 2 && kCount / 2 < first + count) {
            state.runner.store(worker->worker_index);
        } else if (first == 0) {
            while (state.runner.load() == UINT32_MAX) {
                std::this_thread::yield();
            }
        }
    };
    for (int round = 0; round < 100; ++round) {
        seen.runner = UINT32_MAX;
        DispatchFrame frame;
        frame.push_constants = &seen;
        std::atomic<uint32_t> cost_ns{100'000};
        ASSERT_TRUE(pool.Run(self, {.entry = meet,
                                    .frame = &frame,
                                    .workgroup_count = kCount,
                                    .workgroup_cost_ns = &cost_ns,
                                    .independent = true})
                        .ok());
        ASSERT_EQ(seen.runner.load(), 1u);
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
                                    .workgroup_cost_ns = &cost_ns,
                                    .independent = round % 2 == 0})
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
    for (const auto& [workers, independent] :
         {std::pair{1u, false}, std::pair{4u, false}, std::pair{4u, true}}) {
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
                           .workgroup_cost_ns = &cost_ns,
                           .independent = independent};
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
