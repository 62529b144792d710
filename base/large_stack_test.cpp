#include "base/large_stack.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/sanitized.h"

namespace fornax {
namespace {

// Uses `depth` KiB of stack and more: each frame is reached through the next.
uint64_t Recurse(uint64_t depth, volatile uint64_t* above) {
    volatile uint64_t frame[128];
    frame[0] = *above + 1;
    if (depth > 0) {
        Recurse(depth - 1, frame);
    }
    return frame[0];
}

TEST(LargeStack, HoldsWhatTheCallersDoesNot) {
    volatile uint64_t first = 6;
    EXPECT_EQ(OnLargeStack([&] { return Recurse(60'000, &first); }), 7u);
}

TEST(LargeStack, ResultsMove) {
    auto result = OnLargeStack([] { return std::make_unique<int>(7); });
    EXPECT_EQ(*result, 7);
}

TEST(LargeStack, ExceptionsReachTheCaller) {
    EXPECT_THROW(RunOnLargeStack([] { throw std::length_error("deep"); }), std::length_error);
}

TEST(LargeStack, WithoutAddressSpaceTheCallersStackIsUsed) {
#ifdef FORNAX_SANITIZED
    GTEST_SKIP() << "A sanitiser's own memory takes the address space.";
#endif
    rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    const rlimit small{size_t{128} << 20, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &small), 0);
    std::thread::id ran_on;
    RunOnLargeStack([&] { ran_on = std::this_thread::get_id(); });
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_EQ(ran_on, std::this_thread::get_id());
    RunOnLargeStack([&] { ran_on = std::this_thread::get_id(); });
    EXPECT_NE(ran_on, std::this_thread::get_id());
}

}  // namespace
}  // namespace fornax
