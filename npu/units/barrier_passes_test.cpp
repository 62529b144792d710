#include "npu/units/barrier_passes.h"

#include <gtest/gtest.h>

#include "npu/units/test_description.h"

namespace fornax::npu {
namespace {

Description WithExposed(double exposed, double barrier_exposed) {
    Description description = TestDescription();
    description.dma.exposed = exposed;
    description.dma.barrier_exposed = barrier_exposed;
    return description;
}

// One pass that only moves and one that only computes.
constexpr PassCycles kTurns[] = {{.compute = 0, .move = 1000}, {.compute = 800, .move = 0}};
constexpr PassCycles kAll = {.compute = 800, .move = 1000};

double TotalOf(const Description& description,
               std::span<const PassCycles> passes,
               const PassCycles& all,
               uint64_t workgroups = 10,
               uint64_t occupancy = 1) {
    const double exposed = ExposedByBarriers(description, passes, all, workgroups, occupancy);
    EXPECT_GE(exposed, description.dma.exposed);
    EXPECT_LE(exposed, 1);
    return exposed * all.move + std::max(all.compute, (1 - exposed) * all.move);
}

TEST(NpuBarrierPasses, TakeTheSumOfTheLongerOfEach) {
    EXPECT_DOUBLE_EQ(TotalOf(WithExposed(0, 1), kTurns, kAll), 1800);
    EXPECT_DOUBLE_EQ(TotalOf(WithExposed(0, 0), kTurns, kAll), 1000);
    EXPECT_DOUBLE_EQ(TotalOf(WithExposed(0, 0.25), kTurns, kAll), 1200);
    // A tenth is waited for in any case, and in the first pass alone all of it.
    EXPECT_DOUBLE_EQ(TotalOf(WithExposed(0.1, 1), kTurns, kAll), 1800);
    EXPECT_DOUBLE_EQ(TotalOf(WithExposed(0.1, 0), kTurns, kAll), 1000);
}

TEST(NpuBarrierPasses, ThatAreAlikeHideEachOther) {
    const PassCycles alike[] = {{.compute = 400, .move = 500}, {.compute = 400, .move = 500}};
    EXPECT_DOUBLE_EQ(TotalOf(WithExposed(0, 1), alike, kAll), 1000);
    const PassCycles mixed[] = {{.compute = 300, .move = 200}, {.compute = 500, .move = 800}};
    EXPECT_DOUBLE_EQ(TotalOf(WithExposed(0, 1), mixed, kAll), 1100);
    EXPECT_DOUBLE_EQ(ExposedByBarriers(WithExposed(0.2, 1), kTurns, {.compute = 800}, 1, 1), 0.2);
}

// Ten workgroups are three groups of four, and each group waits.
TEST(NpuBarrierPasses, ResidentWorkgroupsFillEachOthersGaps) {
    EXPECT_DOUBLE_EQ(TotalOf(WithExposed(0, 1), kTurns, kAll, 10, 4), 1000 + 0.3 * 800);
    EXPECT_DOUBLE_EQ(TotalOf(WithExposed(0, 1), kTurns, kAll, 10, 0), 1800);
}

}  // namespace
}  // namespace fornax::npu
