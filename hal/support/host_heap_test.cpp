// The set of live ranges, as a thread sees it through its view.
#include "hal/support/host_heap.h"
#include "base/sanitized.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace fornax::hal {
namespace {

constexpr uint64_t kSizes[] = {1, 64, 100, 4'096, 5'000, 131'072, 300'000, 3 << 20};

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

// Small sizes are the ones that the process's own allocations have as well.
TEST(HostHeap, SharesNoPageWithTheProcess) {
    const auto heap = std::make_shared<HostHeap>(64 << 20);
    const auto page_of = [](uint64_t address) { return address / kMemoryPageBytes; };
    std::vector<std::shared_ptr<Memory>> memories;
    std::vector<void*> allocations;
    std::set<uint64_t> pages;
    for (const uint64_t size_bytes : {64u, 1'000u, 5'000u, 100'000u}) {
        for (int i = 0; i < 50; ++i) {
            memories.push_back(*heap->Allocate(size_bytes));
            allocations.push_back(std::malloc(size_bytes));
            const auto begin = reinterpret_cast<uint64_t>(allocations.back());
            for (uint64_t page = page_of(begin); page <= page_of(begin + size_bytes - 1); ++page) {
                pages.insert(page);
            }
        }
    }
    for (const auto& memory : memories) {
        const uint64_t end = memory->address() + memory->size_bytes() - 1;
        for (uint64_t page = page_of(memory->address()); page <= page_of(end); ++page) {
            EXPECT_FALSE(pages.contains(page)) << memory->size_bytes();
        }
    }
    std::ranges::for_each(allocations, std::free);
}

TEST(HostHeap, GuardedMemoryIsAlignedZeroedAndAccounted) {
    const auto heap = std::make_shared<HostHeap>(64 << 20, /*guard=*/true);
    const auto plain = std::make_shared<HostHeap>(64 << 20);
    HeapView view(*heap);
    for (const uint64_t size_bytes : kSizes) {
        for (const MemoryOptions& options : {MemoryOptions{}, MemoryOptions{.exportable = true},
                                             MemoryOptions{.placeable = true}}) {
            const auto memory = *heap->Allocate(size_bytes, options);
            const auto other = *plain->Allocate(size_bytes, options);
            EXPECT_EQ(heap->state().used_bytes, plain->state().used_bytes);
            const bool pages = options.exportable || options.placeable;
            EXPECT_EQ(memory->address() % (pages ? kMemoryPageBytes : kMemoryAlignment), 0u);
            EXPECT_TRUE(view.Contains(memory->address(), size_bytes));
            EXPECT_TRUE(std::all_of(memory->host_pointer(), memory->host_pointer() + size_bytes,
                                    [](std::byte b) { return b == std::byte{0}; }));
            memory->host_pointer()[size_bytes - 1] = std::byte{1};
        }
    }
    EXPECT_EQ(heap->state().used_bytes, 0u);
}

TEST(HostHeapDeathTest, GuardPagesLieOnBothSides) {
    const auto heap = std::make_shared<HostHeap>(64 << 20, /*guard=*/true);
    for (const uint64_t size_bytes : kSizes) {
        for (const MemoryOptions& options : {MemoryOptions{}, MemoryOptions{.exportable = true},
                                             MemoryOptions{.placeable = true}}) {
            const auto memory = *heap->Allocate(size_bytes, options);
            const uint64_t alignment =
                options.exportable || options.placeable ? kMemoryPageBytes : kMemoryAlignment;
            const uint64_t slack = (alignment - size_bytes % alignment) % alignment;
            volatile std::byte* begin = memory->host_pointer();
            EXPECT_DEATH(begin[size_bytes + slack] = std::byte{1}, "") << size_bytes;
            const uint64_t before = memory->address() % kMemoryPageBytes + 1;
            EXPECT_DEATH(*(begin - before) = std::byte{1}, "") << size_bytes;
        }
    }
}

TEST(HostHeap, GuardedFilesAreSharedAsOthersAre) {
    const auto heap = std::make_shared<HostHeap>(64 << 20, /*guard=*/true);
    const auto memory = *heap->Allocate(5'000, {.exportable = true});
    const auto file = memory->ExportFile();
    ASSERT_TRUE(file.ok());
    const auto imported = *heap->ImportFile(file->get(), 5'000);
    memory->host_pointer()[4'999] = std::byte{7};
    EXPECT_EQ(imported->host_pointer()[4'999], std::byte{7});
}

#ifndef FORNAX_THREAD_SANITIZER

// A queue's thread looks addresses up, and others allocate, at the moment of the fork.
TEST(HostHeap, ChildrenOfABusyHeapFreeAndAllocate) {
    const auto heap = std::make_shared<HostHeap>(64 << 20);
    std::shared_ptr<Memory> small = *heap->Allocate(100);
    std::shared_ptr<Memory> large = *heap->Allocate(300'000);
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
            while (!stop) {
                HeapView view(*heap);
                const auto memory = *heap->Allocate(100);
                EXPECT_TRUE(view.Contains(small->address(), 100));
            }
        });
    }
    for (int round = 0; round < 100; ++round) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(20);  // a child that hangs dies of it
            small.reset();
            large.reset();
            const auto own = heap->Allocate(100);
            _exit(own.ok() && (*own)->host_pointer()[99] == std::byte{0} ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
        ASSERT_EQ(WEXITSTATUS(status), 0);
    }
    stop = true;
    for (std::thread& thread : threads) {
        thread.join();
    }
}

#endif

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
