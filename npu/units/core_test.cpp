// How units, workgroups, tiles, launches and energy add up.
#include "npu/units/core.h"

#include <gtest/gtest.h>

#include "npu/units/command_processor.h"
#include "npu/units/energy.h"
#include "npu/units/test_description.h"

namespace fornax::npu {
namespace {

TEST(NpuCore, OverlapLiesBetweenTheBusiestUnitAndAllInTurns) {
    const UnitCycles units = {.matrix = 100, .vector = 40, .special = 10, .scratchpad = 50};
    EXPECT_EQ(CyclesOfWorkgroup(units, 1), 100U);
    EXPECT_EQ(CyclesOfWorkgroup(units, 0), 200U);
    EXPECT_EQ(CyclesOfWorkgroup(units, 0.75), 125U);
}

TEST(NpuCore, OccupancyHidesWhatOneWorkgroupCannot) {
    const UnitCycles units = {.matrix = 100, .vector = 100};
    EXPECT_EQ(CyclesOfWorkgroups(units, 0, 6, 1), 6U * 200);
    EXPECT_EQ(CyclesOfWorkgroups(units, 0, 6, 2), 6U * 100 + 3 * 100);
    EXPECT_EQ(CyclesOfWorkgroups(units, 0, 6, 4), 6U * 100 + 2 * 100);
    Cycles before = UINT64_MAX;
    for (uint64_t occupancy = 1; occupancy < 9; ++occupancy) {
        const Cycles cycles = CyclesOfWorkgroups(units, 0.3, 7, occupancy);
        EXPECT_LE(cycles, before);
        before = cycles;
    }
}

TEST(NpuCore, DoubleBuffersHideLoadsAndStores) {
    const TileCycles tiles[] = {{10, 100, 5}, {20, 10, 5}, {200, 50, 7}};
    // L0 + max(100, L1) + max(10, L2 + S0) + max(50, S1) + S2.
    EXPECT_EQ(CyclesOfTiles(tiles, true), 10U + 100 + 205 + 50 + 7);
    EXPECT_EQ(CyclesOfTiles(tiles, false), 10U + 20 + 200 + 100 + 10 + 50 + 5 + 5 + 7);
    EXPECT_EQ(CyclesOfTiles({}, true), 0U);
    EXPECT_EQ(CyclesOfTiles({tiles, 1}, true), CyclesOfTiles({tiles, 1}, false));
}

TEST(NpuCommandProcessor, LaunchesInCyclesOfTheClock) {
    Description description = TestDescription();
    description.command_processor = {
        .doorbell_ns = 100, .decode_ns = 10.5, .allocation_ns = 20, .drain_ns = 30, .driver_us = 4};
    description.cores.clock_ghz = 2;
    const LaunchCycles launch = LaunchCyclesOf(description);
    EXPECT_EQ(launch.driver, 8000U);
    EXPECT_EQ(launch.doorbell, 200U);
    EXPECT_EQ(launch.decode, 21U);
    EXPECT_EQ(launch.allocation, 40U);
    EXPECT_EQ(launch.drain, 60U);
}

TEST(NpuEnergy, IsEventsTimesTheirEnergyAndPowerOverTime) {
    Description description = TestDescription();
    description.energy = {.mac_int8_pj = 1,
                          .mac_f16_pj = 2,
                          .mac_bf16_pj = 3,
                          .mac_f32_pj = 4,
                          .vector_pj = 5,
                          .special_pj = 6,
                          .scratchpad_pj_per_byte = 7,
                          .network_pj_per_byte = 8,
                          .dram_pj_per_byte = 9,
                          .host_link_pj_per_byte = 10,
                          .static_mw = 50};
    EnergyEvents events = {.multiply_accumulates = {1000, 1000, 1000, 1000},
                           .vector_operations = 1000,
                           .special_operations = 1000,
                           .scratchpad_bytes = 1000,
                           .network_bytes = 1000,
                           .dram_bytes = 1000,
                           .host_link_bytes = 1000};
    Energy energy = EnergyOf(description, events, 4000);
    EXPECT_DOUBLE_EQ(energy.matrix_nj, 10);
    EXPECT_DOUBLE_EQ(energy.vector_nj, 5);
    EXPECT_DOUBLE_EQ(energy.special_nj, 6);
    EXPECT_DOUBLE_EQ(energy.scratchpad_nj, 7);
    EXPECT_DOUBLE_EQ(energy.network_nj, 8);
    EXPECT_DOUBLE_EQ(energy.dram_nj, 9);
    EXPECT_DOUBLE_EQ(energy.host_link_nj, 10);
    EXPECT_DOUBLE_EQ(energy.static_nj, 200);  // 50 mW for 4 us
    EXPECT_DOUBLE_EQ(energy.total_nj(), 255);
    EnergyEvents twice = events;
    twice += events;
    EXPECT_DOUBLE_EQ(EnergyOf(description, twice, 8000).total_nj(), 510);
}

}  // namespace
}  // namespace fornax::npu
