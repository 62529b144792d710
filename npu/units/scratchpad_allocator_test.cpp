// Policies, the ladder of what a request gets, and the log.
#include "npu/units/scratchpad_allocator.h"

#include <random>

#include <gtest/gtest.h>

#include "npu/units/test_description.h"

namespace fornax::npu {
namespace {

Description SmallScratchpad(ScratchpadPolicy policy) {
    Description description = TestDescription();
    description.scratchpad = {
        .bytes = 4096, .banks = 8, .bank_bytes = 16, .alignment_bytes = 64, .policy = policy};
    return description;
}

ScratchpadRequest Request(uint64_t least, uint64_t preferred, uint64_t workgroups = 100) {
    return {.least_bytes = least, .preferred_bytes = preferred, .workgroups = workgroups};
}

TEST(NpuScratchpad, LadderGivesLessAndLess) {
    const Description description = SmallScratchpad(ScratchpadPolicy::kBump);
    const auto step = [&](const ScratchpadRequest& request, uint64_t slots) {
        ScratchpadAllocator allocator(description);
        return allocator.Request(request, slots, 0, 0);
    };
    Grant grant = step(Request(64, 512), 4);
    EXPECT_EQ(grant.step, GrantStep::kDoubleBuffered);
    EXPECT_TRUE(grant.double_buffered);
    EXPECT_EQ(grant.occupancy, 4U);
    EXPECT_EQ(grant.bytes, 4096U);
    grant = step(Request(64, 1024), 4);
    EXPECT_EQ(grant.step, GrantStep::kSingleBuffered);
    EXPECT_FALSE(grant.double_buffered);
    EXPECT_EQ(grant.occupancy, 4U);
    grant = step(Request(64, 1500), 4);
    EXPECT_EQ(grant.step, GrantStep::kFewerWorkgroups);
    EXPECT_EQ(grant.occupancy, 2U);
    grant = step(Request(64, 5000), 4);
    EXPECT_EQ(grant.step, GrantStep::kLeast);
    EXPECT_EQ(grant.bytes, 64U);
    grant = step(Request(5000, 6000), 4);
    EXPECT_EQ(grant.step, GrantStep::kSpill);
    EXPECT_EQ(grant.bytes, 4096U);
    EXPECT_EQ(grant.spill_bytes, 904U);
    ScratchpadRequest strict = Request(5000, 6000);
    strict.may_spill = false;
    EXPECT_EQ(step(strict, 4).step, GrantStep::kFault);
    // No more workgroups than there are, and nothing for those that ask for nothing.
    EXPECT_EQ(step(Request(64, 1024, 2), 4).step, GrantStep::kDoubleBuffered);
    EXPECT_EQ(step(Request(0, 0), 4).occupancy, 4U);
    EXPECT_FALSE(step(Request(0, 0), 4).id.valid());
    // Products of huge numbers do not wrap.
    EXPECT_EQ(step(Request(uint64_t{1} << 63, uint64_t{1} << 63), 4).step, GrantStep::kSpill);
}

TEST(NpuScratchpad, RequestsWaitForWhatOthersHold) {
    ScratchpadAllocator allocator(SmallScratchpad(ScratchpadPolicy::kBump));
    ScratchpadRequest weights = Request(3000, 3000);
    weights.persists = true;
    const Grant kept = allocator.Request(weights, 4, 10, 1);
    EXPECT_EQ(kept.step, GrantStep::kSingleBuffered);
    EXPECT_EQ(kept.occupancy, 1U);
    EXPECT_EQ(allocator.Request(Request(2000, 2000), 4, 20, 2).step, GrantStep::kWait);
    // Spilling waits as well, for the whole scratchpad.
    EXPECT_EQ(allocator.Request(Request(5000, 5000), 4, 25, 2).step, GrantStep::kWait);
    EXPECT_EQ(allocator.Request(Request(100, 500), 4, 30, 3).step, GrantStep::kFewerWorkgroups);
    allocator.Release(kept.id);
    ASSERT_EQ(allocator.log().size(), 4U);
    EXPECT_EQ(allocator.log()[1].time, 20U);
    EXPECT_EQ(allocator.log()[1].owner, 2U);
    EXPECT_EQ(allocator.log()[1].request.least_bytes, 2000U);
    EXPECT_EQ(allocator.counters().failures, 2U);
    EXPECT_EQ(allocator.counters().grants, 2U);
}

TEST(NpuScratchpad, BumpComesBackWhenAllAreGone) {
    ScratchpadAllocator allocator(SmallScratchpad(ScratchpadPolicy::kBump));
    const Grant a = allocator.Request(Request(1024, 1024, 1), 1, 0, 0);
    EXPECT_TRUE(a.double_buffered);
    const Grant b = allocator.Request(Request(1024, 1024, 1), 1, 0, 0);
    EXPECT_EQ(b.offset, 2048U);
    allocator.Release(a.id);
    EXPECT_EQ(allocator.Request(Request(64, 64, 1), 1, 0, 0).step, GrantStep::kWait);
    allocator.Release(b.id);
    EXPECT_EQ(allocator.used_bytes(), 0U);
    EXPECT_EQ(allocator.Request(Request(64, 64, 1), 1, 0, 0).offset, 0U);
}

TEST(NpuScratchpad, BuddiesArePowersOfTwoAtMultiplesOfThemselves) {
    ScratchpadAllocator allocator(SmallScratchpad(ScratchpadPolicy::kBuddy));
    const Grant a = allocator.Request(Request(100, 100, 1), 1, 0, 0);  // two buffers: 256
    const Grant b = allocator.Request(Request(500, 500, 1), 1, 0, 0);  // 1024
    EXPECT_EQ(a.offset, 0U);
    EXPECT_EQ(b.offset, 1024U);
    EXPECT_EQ(allocator.used_bytes(), 1280U);
    EXPECT_EQ(allocator.counters().padding_bytes, 56U + 24);
    // The largest hole is behind b, the other between a and b.
    EXPECT_DOUBLE_EQ(allocator.fragmentation(), 1 - 2048.0 / 2816);
}

TEST(NpuScratchpad, ColouredGrantsBeginAtOtherBanks) {
    ScratchpadAllocator allocator(SmallScratchpad(ScratchpadPolicy::kBankColoured));
    const Grant a = allocator.Request(Request(64, 64, 1), 1, 0, 0);
    const Grant b = allocator.Request(Request(64, 64, 1), 1, 0, 0);
    const auto bank = [](const Grant& grant) { return grant.offset / 16 % 8; };
    EXPECT_NE(bank(a), bank(b));
    EXPECT_GE(b.offset, a.offset + a.bytes);
}

// Whatever is asked for and released: grants lie within the scratchpad and not on each other.
TEST(NpuScratchpad, RandomGrantsDoNotOverlap) {
    for (const auto policy :
         {ScratchpadPolicy::kBump, ScratchpadPolicy::kBuddy, ScratchpadPolicy::kBankColoured}) {
        std::mt19937_64 random(7);
        ScratchpadAllocator allocator(SmallScratchpad(policy));
        std::vector<Grant> held;
        for (int i = 0; i < 3000; ++i) {
            if (!held.empty() && random() % 2 == 0) {
                const size_t which = random() % held.size();
                allocator.Release(held[which].id);
                held.erase(held.begin() + static_cast<ptrdiff_t>(which));
            }
            const uint64_t least = random() % 1500;
            ScratchpadRequest request = Request(least, least + random() % 1500, 1 + random() % 9);
            request.persists = random() % 4 == 0;
            const Grant grant = allocator.Request(request, 1 + random() % 6, 0, 0);
            if (!grant.id.valid()) {
                continue;
            }
            EXPECT_EQ(grant.offset % 64, 0U);
            EXPECT_LE(grant.offset + grant.bytes, 4096U);
            for (const Grant& other : held) {
                EXPECT_TRUE(grant.offset + grant.bytes <= other.offset ||
                            other.offset + other.bytes <= grant.offset);
            }
            held.push_back(grant);
        }
        EXPECT_EQ(allocator.log().size(), 3000U);
        EXPECT_LE(allocator.counters().high_water_bytes, 4096U);
        for (const Grant& grant : held) {
            allocator.Release(grant.id);
        }
        EXPECT_EQ(allocator.used_bytes(), 0U);
        EXPECT_EQ(allocator.fragmentation(), 0);
    }
}

}  // namespace
}  // namespace fornax::npu
