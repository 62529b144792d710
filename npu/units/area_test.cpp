#include "npu/units/area.h"

#include <gtest/gtest.h>

#include "npu/units/test_description.h"

namespace fornax::npu {
namespace {

TEST(AreaProxy, IsTheSumOfItsParts) {
    Description description = TestDescription();
    description.cores.clusters = 1;
    description.cores.per_cluster = 2;
    description.matrix = {.units = 1, .rows = 10, .columns = 100, .rate_int8 = 1};
    description.vector = {.units = 2, .bits = 64, .simple_interval = 1, .division_interval = 8};
    description.special = {.lanes = 4, .interval = 2};
    description.scratchpad.bytes = 1'000'000;
    description.dram.bandwidth_gbs = 10;
    description.network.bandwidth_gbs = 20;
    const AreaProxy area = AreaProxyOf(description);
    EXPECT_DOUBLE_EQ(area.matrix_mm2, 2 * 1000 * 318 / 1e6);
    EXPECT_DOUBLE_EQ(area.vector_mm2, 2 * 4 * 11'884 / 1e6);
    EXPECT_DOUBLE_EQ(area.special_mm2, 2 * 4 * 11'884 / 1e6);
    EXPECT_DOUBLE_EQ(area.scratchpad_mm2, 2 * 8 * 0.374 * 1.5);
    EXPECT_DOUBLE_EQ(area.interfaces_mm2, 1.2);
    EXPECT_DOUBLE_EQ(area.total_mm2(), area.matrix_mm2 + area.vector_mm2 + area.special_mm2 +
                                           area.scratchpad_mm2 + area.interfaces_mm2);
}

TEST(AreaProxy, FollowsTheTypeThatNeedsMost) {
    Description description = TestDescription();
    description.matrix.rate_int8 = 1;
    description.matrix.rate_f16 = 0;
    const double narrow = AreaProxyOf(description).matrix_mm2;
    description.matrix.rate_f16 = 0.5;
    EXPECT_GT(AreaProxyOf(description).matrix_mm2, narrow);
    description.matrix.units = 0;
    EXPECT_EQ(AreaProxyOf(description).matrix_mm2, 0);
}

}  // namespace
}  // namespace fornax::npu
