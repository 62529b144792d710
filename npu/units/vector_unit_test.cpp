// Vectors of lanes and their intervals.
#include "npu/units/vector_unit.h"

#include <gtest/gtest.h>

#include "npu/units/test_description.h"

namespace fornax::npu {
namespace {

TEST(NpuVectorUnit, CountsWholeVectorsTimesTheirInterval) {
    Description description = TestDescription();
    description.vector = {.units = 2, .bits = 256, .simple_interval = 1, .division_interval = 8};
    EXPECT_EQ(CyclesOnVectorUnits(description, {.simple = 16}, 32), 1U);
    EXPECT_EQ(CyclesOnVectorUnits(description, {.simple = 17}, 32), 2U);
    EXPECT_EQ(CyclesOnVectorUnits(description, {.simple = 32}, 16), 1U);
    EXPECT_EQ(CyclesOnVectorUnits(description, {.simple = 17, .division = 1}, 32), 2U + 8);
    EXPECT_EQ(CyclesOnVectorUnits(description, {.special = 1000}, 32), 0U);
    description.vector.simple_interval = 0.25;
    EXPECT_EQ(CyclesOnVectorUnits(description, {.simple = 1}, 32), 1U);
    EXPECT_EQ(CyclesOnVectorUnits(description, {.simple = 16 * 8}, 32), 2U);
}

TEST(NpuVectorUnit, MultiplyAddsMayHaveAnIntervalOfTheirOwn) {
    Description description = TestDescription();
    description.vector = {.units = 1, .bits = 256, .simple_interval = 1, .division_interval = 8};
    EXPECT_EQ(CyclesOnVectorUnits(description, {.simple = 4, .multiply_add = 4}, 32), 1U);
    description.vector.multiply_add_interval = 3;
    EXPECT_EQ(CyclesOnVectorUnits(description, {.simple = 4, .multiply_add = 4}, 32), 1U + 3);
    EXPECT_EQ(CyclesOnVectorUnits(description, {.multiply_add = 17}, 32), 9U);
}

TEST(NpuVectorUnit, SpecialFunctionsMayTakeTheVectorUnits) {
    Description description = TestDescription();
    description.vector = {.units = 1, .bits = 256, .simple_interval = 1, .division_interval = 8};
    description.special = {.lanes = 8, .interval = 10, .unit = SpecialUnit::kVector};
    EXPECT_EQ(CyclesOnVectorUnits(description, {.simple = 8, .special = 16}, 32), 1U + 20);
    EXPECT_EQ(CyclesOnSpecialUnit(description, {.simple = 8, .special = 16}), 0U);
}

TEST(NpuVectorUnit, SpecialFunctionsHaveLanesOfTheirOwn) {
    Description description = TestDescription();
    description.special = {.lanes = 8, .interval = 2};
    EXPECT_EQ(CyclesOnSpecialUnit(description, {.special = 8}), 2U);
    EXPECT_EQ(CyclesOnSpecialUnit(description, {.simple = 5, .special = 9}), 4U);
    EXPECT_EQ(CyclesOnSpecialUnit(description, {.simple = 5}), 0U);
}

}  // namespace
}  // namespace fornax::npu
