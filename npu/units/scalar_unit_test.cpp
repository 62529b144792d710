// Operations one after the other.
#include "npu/units/scalar_unit.h"

#include <gtest/gtest.h>

#include "npu/units/test_description.h"

namespace fornax::npu {
namespace {

TEST(NpuScalarUnit, OperationsFollowEachOther) {
    Description description = TestDescription();
    description.scalar.interval = 1.5;
    EXPECT_EQ(CyclesOnScalarUnit(description, 0), 0U);
    EXPECT_EQ(CyclesOnScalarUnit(description, 3), 5U);  // a whole cycle
    EXPECT_EQ(CyclesOnScalarUnit(description, 1000), 1500U);
    description.scalar.interval = 0;
    EXPECT_EQ(CyclesOnScalarUnit(description, 1000), 0U);
}

}  // namespace
}  // namespace fornax::npu
