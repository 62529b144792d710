// Banks, DMA, DRAM, network, host link, and how they are shared.
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npu/units/dma_engine.h"
#include "npu/units/dram.h"
#include "npu/units/fair_share.h"
#include "npu/units/host_link.h"
#include "npu/units/network.h"
#include "npu/units/scratchpad_banks.h"
#include "npu/units/test_description.h"

namespace fornax::npu {
namespace {

using ::testing::ElementsAre;

TEST(NpuScratchpadBanks, ConflictsAreTheCommonDivisorOfStrideAndBanks) {
    EXPECT_EQ(ConflictDegree(1, 8), 1U);
    EXPECT_EQ(ConflictDegree(3, 8), 1U);
    EXPECT_EQ(ConflictDegree(6, 8), 2U);
    EXPECT_EQ(ConflictDegree(16, 8), 8U);
    EXPECT_EQ(ConflictDegree(5, 15), 5U);
    EXPECT_EQ(ConflictDegree(0, 8), 1U);
    Description description = TestDescription();  // 8 banks of 16 bytes
    EXPECT_EQ(CyclesOnBanks(description, 1024, 1), 8U);
    EXPECT_EQ(CyclesOnBanks(description, 1025, 4), 9U * 4);
    EXPECT_EQ(CyclesOfSingleAccesses(description, 2 * description.scratchpad.banks + 1), 3U);
}

TEST(NpuDma, IsCappedByItsPortAndByLittlesLaw) {
    Description description = TestDescription();
    description.dma = {
        .engines = 2, .port_gbs = 16, .setup_ns = 10, .outstanding = 8, .efficiency = 0.5};
    description.dram.latency_ns = 80;
    description.network.latency_ns = 20;
    description.dram.burst_bytes = 64;
    // 8 * 64 bytes in 100 cycles are less than the port's 8.
    EXPECT_DOUBLE_EQ(DmaBytesPerCycle(description, 3), 6 * 5.12);
    description.dma.outstanding = 1000;
    EXPECT_DOUBLE_EQ(DmaBytesPerCycle(description, 3), 6 * 8.0);
    description.dram.latency_ns = description.network.latency_ns = 0;
    EXPECT_DOUBLE_EQ(DmaBytesPerCycle(description, 1), 2 * 8.0);
    EXPECT_EQ(DmaLatency(description), 10U);
    EXPECT_EQ(DmaSetups(description, 0), 0U);
    EXPECT_EQ(DmaSetups(description, 5), 30U);
}

TEST(NpuDma, BurstsThatDoNotFollowEachOtherHaveTheirOwnRate) {
    Description description = TestDescription();
    description.dma = {.engines = 2, .port_gbs = 8, .outstanding = 1000, .efficiency = 1};
    description.dram.latency_ns = description.network.latency_ns = 0;
    const Traffic traffic = {.dram_read = 1600, .apart = 800, .port = 800};
    EXPECT_DOUBLE_EQ(DmaCycles(description, traffic, 2), 800.0 / 16);
    // Half of what enters the core, at a quarter of the rate.
    description.dma.apart_gbs = 2;
    EXPECT_DOUBLE_EQ(DmaCycles(description, traffic, 2), 400.0 / 16 + 400.0 / 4);
    // A quarter of it anywhere, and what is left follows each other.
    const Traffic far = {.dram_read = 1600, .apart = 800, .far = 400, .port = 800};
    description.dma.far_gbs = 1;
    description.dma.stream_gbs = 4;
    EXPECT_DOUBLE_EQ(DmaCycles(description, far, 2), 400.0 / 4 + 200.0 / 2 + 200.0 / 8);
    // What caches serve has the port's rate.
    EXPECT_DOUBLE_EQ(DmaCycles(description, {.port = 800}, 2), 800.0 / 16);
    description.dma.far_gbs = description.dma.stream_gbs = 0;
    description.dma.apart_gbs = 100;
    EXPECT_DOUBLE_EQ(DmaCycles(description, traffic, 2), 800.0 / 16);
    EXPECT_DOUBLE_EQ(DmaCycles(description, {}, 1), 1.0 / 16);
}

TEST(NpuDram, ReadsOfBurstsThatDoNotFollowEachOtherAreCounted) {
    const Description description = TestDescription();  // bursts of 64 bytes
    const auto apart = [&](const Access& access) {
        return TrafficOf(description, access, 2).apart;
    };
    EXPECT_EQ(apart({.bytes = 1000}), 0U);
    EXPECT_EQ(apart({.bytes = 1000, .apart = true}), 1000U);
    EXPECT_EQ(apart({.writes = true, .bytes = 1000, .apart = true}), 0U);
    EXPECT_EQ(apart({.bytes = 1000, .far = true}), 0U);
    const auto far = [&](const Access& access) { return TrafficOf(description, access, 2).far; };
    EXPECT_EQ(far({.bytes = 1000, .apart = true, .far = true}), 1000U);
    EXPECT_EQ(far({.bytes = 1000, .apart = true}), 0U);
    EXPECT_EQ(far({.kind = AccessKind::kGather, .bytes = 8}), 2U * 64);
    EXPECT_EQ(far({.kind = AccessKind::kScatter, .writes = true, .bytes = 8}), 0U);
    EXPECT_EQ(far({.kind = AccessKind::kAtomic, .writes = true, .bytes = 8}), 2U * 64);
}

TEST(NpuDram, StreamsMoveWhatTheyNeedAndGathersWholeBursts) {
    const Description description = TestDescription();  // bursts of 64 bytes
    const Traffic stream = TrafficOf(description, {AccessKind::kStream, false, 1000}, 2);
    EXPECT_EQ(stream.dram_read, 1000U);
    EXPECT_EQ(stream.dram_written, 0U);
    EXPECT_EQ(stream.port, 500U);
    const Traffic gather = TrafficOf(description, {AccessKind::kGather, false, 1000, 4}, 2);
    EXPECT_EQ(gather.dram_read, 250U * 64);
    EXPECT_EQ(gather.over_fetch, 250U * 64 - 1000);
    const Traffic rows = TrafficOf(description, {AccessKind::kGather, false, 1000, 100}, 2);
    EXPECT_EQ(rows.dram_read, 10U * 128);
    const Traffic scatter = TrafficOf(description, {AccessKind::kScatter, true, 8, 4}, 1);
    EXPECT_EQ(scatter.dram_written, 2U * 64);
    const Traffic atomic = TrafficOf(description, {AccessKind::kAtomic, true, 8, 4}, 1);
    EXPECT_EQ(atomic.dram(), 4U * 64);
    EXPECT_EQ(atomic.network, 4U * 64);
    const Traffic broadcast = TrafficOf(description, {AccessKind::kBroadcast, false, 1000}, 2);
    EXPECT_EQ(broadcast.dram_read, 1000U);
    EXPECT_EQ(broadcast.network, 1000U);
    EXPECT_EQ(broadcast.port, 1000U);
}

TEST(NpuDram, RatesFollowTheClockAndTheEfficiency) {
    Description description = TestDescription();
    description.dram.bandwidth_gbs = 10;
    description.dram.efficiency = 0.9;
    description.network.bandwidth_gbs = 16;
    description.host_link = {.bandwidth_gbs = 4, .latency_ns = 100};
    EXPECT_DOUBLE_EQ(DramBytesPerCycle(description), 9);
    EXPECT_EQ(HostLinkLatency(description), 100U);
    description.cores.clock_ghz = 2;
    EXPECT_DOUBLE_EQ(DramBytesPerCycle(description), 4.5);
    EXPECT_DOUBLE_EQ(NetworkBytesPerCycle(description), 8);
    EXPECT_DOUBLE_EQ(HostLinkBytesPerCycle(description), 2);
    EXPECT_EQ(HostLinkLatency(description), 200U);
}

TEST(NpuFairShare, FillsProgressively) {
    const auto share = [](double bandwidth, std::vector<double> caps) {
        return MaxMinFair(bandwidth, caps);
    };
    EXPECT_THAT(share(9, {10, 10, 10}), ElementsAre(3, 3, 3));
    EXPECT_THAT(share(9, {1, 10, 10}), ElementsAre(1, 4, 4));
    EXPECT_THAT(share(9, {10, 1, 3}), ElementsAre(5, 1, 3));
    EXPECT_THAT(share(9, {1, 2, 3}), ElementsAre(1, 2, 3));
    EXPECT_THAT(share(9, {}), ElementsAre());
}

// No flow could have more without one with no more having less.
TEST(NpuFairShare, IsMaxMinFairOfRandomCaps) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 500; ++i) {
        std::vector<double> caps(1 + random() % 20);
        for (double& cap : caps) {
            cap = 1 + static_cast<double>(random() % 1000);
        }
        const double bandwidth = 1 + static_cast<double>(random() % 5000);
        const std::vector<double> rates = MaxMinFair(bandwidth, caps);
        const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
        const double wanted = std::accumulate(caps.begin(), caps.end(), 0.0);
        EXPECT_NEAR(sum, std::min(bandwidth, wanted), 1e-6);
        const double most = *std::ranges::max_element(rates);
        for (size_t flow = 0; flow < caps.size(); ++flow) {
            EXPECT_LE(rates[flow], caps[flow]);
            EXPECT_TRUE(rates[flow] == caps[flow] || rates[flow] >= most - 1e-6);
        }
    }
}

}  // namespace
}  // namespace fornax::npu
