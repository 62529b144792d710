// The budget of a spinning thread: it falls while events stay away and rises when they come soon.
#include "hal/support/adaptive_spin.h"

#include <gtest/gtest.h>

namespace fornax::hal {
namespace {

constexpr uint64_t kShortestNs = 100;
constexpr uint64_t kLongestNs = 6'400;

void GiveUp(AdaptiveSpin& spin, int times) {
    for (int i = 0; i < times; ++i) {
        EXPECT_FALSE(spin.Until([] { return false; }));
    }
}

TEST(AdaptiveSpinTest, BeginsWithTheLongestBudget) {
    EXPECT_EQ(AdaptiveSpin(kShortestNs, kLongestNs).budget_ns(), kLongestNs);
}

TEST(AdaptiveSpinTest, FallsToTheShortestWhileNothingComes) {
    AdaptiveSpin spin(kShortestNs, kLongestNs);
    GiveUp(spin, 1);
    EXPECT_EQ(spin.budget_ns(), kLongestNs - kLongestNs / 4);
    GiveUp(spin, 50);
    EXPECT_EQ(spin.budget_ns(), kShortestNs);
}

TEST(AdaptiveSpinTest, RisesWhereSpinningSucceeds) {
    AdaptiveSpin spin(kShortestNs, kLongestNs);
    GiveUp(spin, 50);
    EXPECT_TRUE(spin.Until([] { return true; }));
    EXPECT_EQ(spin.budget_ns(), 2 * kShortestNs);
}

// Each event comes after what is longer than the budget and shorter than the longest one.
TEST(AdaptiveSpinTest, RisesWhereTheLongestBudgetWouldHaveSufficed) {
    AdaptiveSpin spin(kShortestNs, kLongestNs);
    GiveUp(spin, 50);
    for (int i = 0; i < 12; ++i) {
        GiveUp(spin, 1);
        spin.EventCame(1'000, 1'000 + kLongestNs);
    }
    EXPECT_GT(spin.budget_ns(), kLongestNs / 2);
    EXPECT_LE(spin.budget_ns(), kLongestNs);
}

TEST(AdaptiveSpinTest, StaysShortWhereEventsComeLate) {
    AdaptiveSpin spin(kShortestNs, kLongestNs);
    GiveUp(spin, 50);
    spin.EventCame(1'000, 1'000 + kLongestNs + 1);
    spin.EventCame(1'000, 0);
    spin.EventCame(1'000, 999);
    EXPECT_EQ(spin.budget_ns(), kShortestNs);
}

}  // namespace
}  // namespace fornax::hal
