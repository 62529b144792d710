// SCALE-Sim's published cycles, and the equations on their own.
#include "npu/units/matrix_unit.h"

#include <gtest/gtest.h>

#include "npu/units/test_description.h"

namespace fornax::npu {
namespace {

constexpr ArrayShape kArray = {32, 32};
constexpr ProductShape kGemm = {.m = 256, .n = 128, .k = 256};

// SCALE-Sim counts from 0. Its documentation has the first, its tests have the others as golden
// results.
TEST(NpuMatrixUnit, IsOneMoreThanScaleSimPublishes) {
    const ProductShape alexnet_conv1 = {.m = 55 * 55, .n = 96, .k = 11 * 11 * 3};
    EXPECT_EQ(CyclesOfProduct(kArray, alexnet_conv1, Dataflow::kWeightStationary).cycles - 1,
              112'283U);
    EXPECT_EQ(CyclesOfProduct(kArray, kGemm, Dataflow::kWeightStationary).cycles - 1, 11'199U);
    EXPECT_EQ(CyclesOfProduct(kArray, kGemm, Dataflow::kOutputStationary).cycles - 1, 10'175U);
    EXPECT_EQ(CyclesOfProduct(kArray, kGemm, Dataflow::kInputStationary).cycles - 1, 14'207U);
}

TEST(NpuMatrixUnit, ArrayOfOneTakesACycleForEachProductAndOneForEachWeight) {
    const ProductShape shape = {.m = 5, .n = 1, .k = 1};
    // 2 + 1 + 5 - 2: the weight enters, then five values pass.
    EXPECT_EQ(CyclesOfProduct({1, 1}, shape, Dataflow::kWeightStationary).cycles, 6U);
    EXPECT_EQ(CyclesOfProduct({1, 1}, shape, Dataflow::kOutputStationary).cycles, 5U);
}

TEST(NpuMatrixUnit, ArraysThatAreNotSquareFoldByTheirSides) {
    const ProductShape shape = {.m = 10, .n = 20, .k = 30};
    const ProductCycles weight = CyclesOfProduct({8, 16}, shape, Dataflow::kWeightStationary);
    EXPECT_EQ(weight.folds, 4U * 2);
    EXPECT_EQ(weight.cycles, (16U + 16 + 10 - 2) * 8);
    const ProductCycles output = CyclesOfProduct({8, 16}, shape, Dataflow::kOutputStationary);
    EXPECT_EQ(output.folds, 2U * 2);
    EXPECT_EQ(output.cycles, (8U + 16 + 30 - 2) * 4);
    const ProductCycles input = CyclesOfProduct({8, 16}, shape, Dataflow::kInputStationary);
    EXPECT_EQ(input.folds, 4U * 1);
    EXPECT_EQ(input.cycles, (16U + 16 + 20 - 2) * 4);
}

TEST(NpuMatrixUnit, BestIsTheLeastAndSaysWhich) {
    const ProductCycles best = CyclesOfProduct(kArray, kGemm, Dataflow::kBest);
    EXPECT_EQ(best.cycles, 10'176U);
    EXPECT_EQ(best.dataflow, Dataflow::kOutputStationary);
    EXPECT_EQ(CyclesOfProduct(kArray, {.m = 0, .n = 4, .k = 4}, Dataflow::kBest).cycles, 0U);
}

TEST(NpuMatrixUnit, SlowerTypesTakeLongerByTheirRate) {
    const Description edge = TestDescription();
    EXPECT_EQ(CyclesOfProduct(edge, kGemm, MatrixType::kInt8).cycles, 11'200U);
    EXPECT_EQ(CyclesOfProduct(edge, kGemm, MatrixType::kF16).cycles, 4 * 11'200U);
}

TEST(NpuMatrixUnit, TakesOperandsFromTheScratchpadOnceAFold) {
    const ProductCycles cycles = CyclesOfProduct(kArray, kGemm, Dataflow::kWeightStationary);
    EXPECT_EQ(ScratchpadBytesOfProduct(kArray, kGemm, cycles, MatrixType::kF16),
              32U * 32 * (32 + 256) * 2 + 256 * 128 * 4);
}

}  // namespace
}  // namespace fornax::npu
