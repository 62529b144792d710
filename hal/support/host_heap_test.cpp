// The set of live ranges, as a thread sees it through its view.
#include "hal/support/host_heap.h"

#include <gtest/gtest.h>

#include <thread>

namespace fornax::hal {
namespace {

TEST(HostHeap, ViewKnowsLiveRangesExactly) {
    const auto heap = std::make_shared<HostHeap>(1 << 20);
    HeapView view(*heap);
    auto memory = *heap->Allocate(100);
    const uint64_t begin = memory->address();
    for (int again = 0; again < 2; ++again) {
        EXPECT_TRUE(view.Contains(begin, 100));
        EXPECT_TRUE(view.Contains(begin + 99, 1));
        EXPECT_TRUE(view.Contains(begin + 100, 0));
        EXPECT_FALSE(view.Contains(begin + 100, 1)) << "not the rounded size";
        EXPECT_FALSE(view.Contains(begin + 1, 100));
        EXPECT_FALSE(view.Contains(begin - 1, 1));
        EXPECT_FALSE(view.Contains(begin + 1, UINT64_MAX));
        EXPECT_FALSE(view.Contains(0, 0));
        EXPECT_FALSE(view.Contains(UINT64_MAX, 1));
    }
    memory.reset();
    EXPECT_FALSE(view.Contains(begin, 1)) << "freed";
}

TEST(HostHeap, ViewFindsMoreRangesThanItRemembers) {
    const auto heap = std::make_shared<HostHeap>(1 << 20);
    HeapView view(*heap);
    std::vector<std::shared_ptr<Memory>> memories;
    for (int i = 0; i < 50; ++i) {
        memories.push_back(*heap->Allocate(64));
    }
    for (int round = 0; round < 3; ++round) {
        for (const auto& memory : memories) {
            EXPECT_TRUE(view.Contains(memory->address(), 64));
        }
    }
}

TEST(HostHeap, StateAddsUp) {
    const auto heap = std::make_shared<HostHeap>(1 << 20);
    auto small = *heap->Allocate(1);
    auto large = *heap->Allocate(300'000);
    EXPECT_EQ(heap->state().used_bytes, 64u + 303'104u);
    EXPECT_LE(heap->state().budget_bytes, heap->state().size_bytes);
    EXPECT_GT(heap->state().budget_bytes, 0u);
    small.reset();
    large.reset();
    EXPECT_EQ(heap->state().used_bytes, 0u);
}

TEST(HostHeap, DefaultFitsTheMachine) {
    EXPECT_GT(DefaultHeapBytes(), uint64_t{64} << 20);
    EXPECT_EQ(DefaultHeapBytes() % kMemoryPageBytes, 0u);
}

TEST(HostHeap, ThreadsAllocateAndLook) {
    const auto heap = std::make_shared<HostHeap>(64 << 20);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            HeapView view(*heap);
            for (int i = 0; i < 2'000; ++i) {
                auto memory = *heap->Allocate(64 + i % 5'000);
                EXPECT_TRUE(view.Contains(memory->address(), memory->size_bytes()));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(heap->state().used_bytes, 0u);
}

}  // namespace
}  // namespace fornax::hal
