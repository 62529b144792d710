// Small programs whose time can be worked out by hand.
#include "npu/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npu/replay/product_split.h"
#include "npu/replay/test_records.h"
#include "npu/units/command_processor.h"
#include "npu/units/dma_engine.h"
#include "npu/units/test_description.h"

namespace fornax::npu {
namespace {

using ::testing::HasSubstr;

// One core, one cycle a nanosecond, launches of 10 + 20 + 30 + 40 cycles behind 1000 of the driver.
Description SmallMachine() {
    Description machine = TestDescription();
    machine.cores.clusters = machine.cores.per_cluster = 1;
    machine.command_processor = {
        .doorbell_ns = 10, .decode_ns = 20, .allocation_ns = 30, .drain_ns = 40, .driver_us = 1};
    machine.dram = {.bandwidth_gbs = 8, .latency_ns = 90, .burst_bytes = 64, .efficiency = 0.5};
    machine.network = {.bandwidth_gbs = 100, .latency_ns = 10};
    machine.dma = {
        .engines = 1, .port_gbs = 100, .setup_ns = 7, .outstanding = 1000, .efficiency = 1};
    machine.host_link = {.bandwidth_gbs = 2, .latency_ns = 500};
    return machine;
}

ReplayResult Replayed(const Description& machine, const std::vector<Record>& records) {
    Result<ReplayResult> result = Replay(machine, records);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? std::move(result).value() : ReplayResult();
}

TEST(NpuReplay, AnEmptyDispatchIsItsLaunch) {
    const ReplayResult result = Replayed(SmallMachine(), {{.work = DispatchRecord{.name = "e"}}});
    EXPECT_EQ(result.total, 1000U + 10 + 20 + 30 + 40);
    EXPECT_EQ(result.records[0].launch, 20U + 30 + 40);
    EXPECT_EQ(result.records[0].bound, Bound::kLaunch);
    EXPECT_EQ(Replayed(SmallMachine(), {}).total, 0U);
}

TEST(NpuReplay, ComputationAloneTakesItsCycles) {
    DispatchRecord dispatch = {.name = "c", .workgroups = 3};
    dispatch.operations.simple = 3 * 8 * 100;  // 8 lanes
    const ReplayResult result = Replayed(SmallMachine(), {{.work = dispatch}});
    EXPECT_EQ(result.total, 1100U + 300);
    EXPECT_EQ(result.records[0].bound, Bound::kVector);
    const UnitTime vector = result.units[static_cast<size_t>(Unit::kVector)];
    EXPECT_EQ(vector.busy, 300U);
    EXPECT_EQ(vector.stall, 0U);
    EXPECT_EQ(vector.idle, 1100U);
}

// A histogram: each element takes a bank for a cycle, however narrow it is.
TEST(NpuReplay, SingleAccessesOfAScratchpadTakeABankEach) {
    Description machine = SmallMachine();
    machine.scratchpad.banks = 4;
    DispatchRecord dispatch = {.name = "h", .workgroups = 2};
    dispatch.scratchpad_accesses = 2 * 4000;
    const ReplayResult result = Replayed(machine, {{.work = dispatch}});
    EXPECT_EQ(result.total, 1100U + 2 * 1000);
    EXPECT_EQ(result.records[0].bound, Bound::kScratchpad);
    EXPECT_EQ(result.events.scratchpad_bytes, 4U * 8000);
}

// Rows that a workgroup reads three times come once, if one is no larger than its scratchpad.
TEST(NpuReplay, WhatAWorkgroupReadsAgainStaysInItsScratchpad) {
    Description machine = SmallMachine();
    machine.cores.workgroup_slots = 2;
    machine.scratchpad.bytes = 8192;
    DispatchRecord dispatch = {.name = "r", .workgroups = 16};
    dispatch.accesses = {{.bytes = 3 * 16 * 4096, .repeated_bytes = 2 * 16 * 4096}};
    const ReplayResult result = Replayed(machine, {{.work = dispatch}});
    EXPECT_EQ(result.traffic.dram_read, 16U * 4096);
    EXPECT_EQ(result.events.scratchpad_bytes, (2U + 1 + 1) * 16 * 4096);
    machine.cores.workgroup_slots = 4;
    EXPECT_EQ(Replayed(machine, {{.work = dispatch}}).traffic.dram_read, 3U * 16 * 4096);
}

// What a dispatch has written the next one finds, if the cache is as large; places that programs do
// not name are DRAM's.
TEST(NpuReplay, ACacheServesWhatTheLastDispatchTouched) {
    constexpr uint64_t kBytes = 1 << 20;
    DispatchRecord writes = {.name = "w"}, reads = {.name = "r"};
    writes.accesses = {{.writes = true, .bytes = kBytes, .range = {1, 0, kBytes}}};
    // Twice: the second time is over-fetch of another kind.
    reads.accesses = {{.bytes = 2 * kBytes, .range = {1, 0, kBytes}}};
    const std::vector<Record> records = {{.work = writes}, {.work = reads, .after = {RecordId(0)}}};
    Description machine = SmallMachine();
    machine.network.bandwidth_gbs = 50;
    const ReplayResult without = Replayed(machine, records);
    EXPECT_EQ(without.traffic.dram_read, 2 * kBytes);
    EXPECT_EQ(without.traffic.dram_written, kBytes);
    machine.cache.bytes = kBytes;
    const ReplayResult with = Replayed(machine, records);
    EXPECT_EQ(with.traffic.dram(), 0U);
    EXPECT_EQ(with.traffic.network, 3 * kBytes);
    EXPECT_EQ(with.events.dram_bytes, 0U);
    EXPECT_EQ(with.records[1].bound, Bound::kNetwork);
    EXPECT_LT(with.total, without.total);
    EXPECT_GE(with.total, 3 * kBytes / 50);
    machine.cache.bytes = kBytes / 2;
    EXPECT_EQ(Replayed(machine, records).traffic.dram(), 3 * kBytes);
    std::vector<Record> unnamed = records;
    for (Record& record : unnamed) {
        std::get<DispatchRecord>(record.work).accesses[0].range = {};
    }
    machine.cache.bytes = kBytes;
    EXPECT_EQ(Replayed(machine, unnamed).traffic.dram(), 3 * kBytes);
}

// A kernel that scales what it wrote reads its lines before the first store; in place there is
// nothing to read, long buffers that are only written stream, and short ones do not.
TEST(NpuReplay, StoresThatMissReadFirstWhereCachesAllocate) {
    constexpr uint64_t kBytes = 1 << 20;
    const MemoryRange in = {1, 0, kBytes}, out = {2, 0, kBytes};
    const auto dram = [&](std::vector<Access> accesses, uint64_t below) {
        Description machine = SmallMachine();
        machine.cache = {.bytes = 1 << 16, .write_allocate_bytes = below};
        machine.scratchpad.bytes = 8 << 20;
        DispatchRecord dispatch = {.name = "s", .workgroups = 16, .accesses = std::move(accesses)};
        const ReplayResult result = Replayed(machine, {{.work = dispatch}, {.work = dispatch}});
        return std::pair(
            result.records[0].cost.traffic.dram_read,
            result.records[0].cost.traffic.dram_read + result.records[0].cost.traffic.network);
    };
    const Access read = {.bytes = kBytes, .range = in};
    const Access write = {.writes = true, .bytes = kBytes, .range = out};
    const Access again = {.bytes = kBytes, .repeated_bytes = kBytes, .range = out};
    const Access in_place = {.writes = true, .bytes = kBytes, .range = in};
    EXPECT_EQ(dram({read, write, again}, 0), std::pair(kBytes, 3 * kBytes));
    EXPECT_EQ(dram({read, write, again}, 1), std::pair(2 * kBytes, 4 * kBytes));
    EXPECT_EQ(dram({read, in_place}, kBytes * 2), std::pair(kBytes, 3 * kBytes));
    EXPECT_EQ(dram({read, write}, kBytes), std::pair(kBytes, 3 * kBytes));
    EXPECT_EQ(dram({read, write}, kBytes + 1), std::pair(2 * kBytes, 4 * kBytes));
    // Several stores fill a burst, or none does: no store writes it as a whole.
    Access in_parts = write;
    in_parts.in_parts = true;
    EXPECT_EQ(dram({read, in_parts}, kBytes), std::pair(2 * kBytes, 4 * kBytes));
    EXPECT_EQ(dram({read, in_parts}, 0), std::pair(kBytes, 3 * kBytes));
    Access scatter = write;
    scatter.kind = AccessKind::kScatter;
    scatter.element_bytes = SmallMachine().dram.burst_bytes;
    EXPECT_EQ(dram({read, scatter}, kBytes), std::pair(2 * kBytes, 4 * kBytes));
    // The burst of an atomic comes once, whatever caches do with stores.
    const Access atomic = {
        .kind = AccessKind::kAtomic, .writes = true, .bytes = kBytes, .range = out};
    const auto bursts = dram({atomic}, 0);
    EXPECT_EQ(bursts.first, kBytes / 4 * SmallMachine().dram.burst_bytes);
    EXPECT_EQ(dram({atomic}, kBytes + 1), bursts);
}

// What a core's own cache holds of a stream neither the network nor the shared cache moves.
TEST(NpuReplay, ACoresOwnCacheServesWhatItStreamedBefore) {
    constexpr uint64_t kBytes = 1 << 20;
    DispatchRecord dispatch = {.name = "s", .workgroups = 16};
    const MemoryRange range = {1, 0, kBytes};
    dispatch.accesses = {{.bytes = kBytes, .range = range},
                         {.writes = true, .bytes = kBytes, .range = range}};
    const std::vector<Record> twice = {{.work = dispatch},
                                       {.work = dispatch, .after = {RecordId(0)}}};
    Description machine = SmallMachine();
    machine.cache.bytes = 4 * kBytes;
    machine.network.bandwidth_gbs = 50;
    const ReplayResult shared = Replayed(machine, twice);
    EXPECT_EQ(shared.records[1].cost.traffic.network, 2 * kBytes);
    machine.cache.core_bytes = kBytes;
    const ReplayResult own = Replayed(machine, twice);
    // The store finds what the load brought.
    EXPECT_EQ(own.records[0].cost.traffic.network, kBytes);
    EXPECT_EQ(own.records[1].cost.traffic.network, 0U);
    EXPECT_EQ(own.traffic.dram(), shared.traffic.dram());
    EXPECT_EQ(own.events.scratchpad_bytes, shared.events.scratchpad_bytes);
    EXPECT_LT(own.total, shared.total);
    // Two cores hold half each.
    machine.cores.clusters = 2;
    machine.cache.core_bytes = kBytes / 2;
    EXPECT_EQ(Replayed(machine, twice).records[1].cost.traffic.network, 0U);
    machine.cache.core_bytes = kBytes / 4;
    EXPECT_EQ(Replayed(machine, twice).records[1].cost.traffic.network, 2 * kBytes);
    // What several cores read is nobody's own.
    machine.cache.core_bytes = kBytes;
    dispatch.accesses = {{.kind = AccessKind::kReuse, .bytes = kBytes, .range = range}};
    const std::vector<Record> reuse = {{.work = dispatch}, {.work = dispatch}};
    EXPECT_EQ(Replayed(machine, reuse).records[1].cost.traffic.network, kBytes);
}

// A pass that loads, a barrier, and one that computes: where cores move bytes themselves they take
// the sum of both, unless other workgroups fill the gaps.
TEST(NpuReplay, PassesBetweenBarriersTakeTurns) {
    DispatchRecord dispatch = {.name = "p", .workgroups = 16};
    dispatch.accesses = {{.bytes = 16 * 4000}};
    dispatch.operations.simple = 16 * 8 * 800;
    dispatch.scratchpad = {.least_bytes = 64, .preferred_bytes = 2048};
    const auto total = [](const DispatchRecord& record, double exposed, uint64_t slots) {
        Description machine = SmallMachine();
        machine.dma.barrier_exposed = exposed;
        machine.cores.workgroup_slots = slots;
        return static_cast<double>(Replayed(machine, {{.work = record}}).total);
    };
    DispatchRecord passes = dispatch;
    passes.passes = {{}, {.operations = {.simple = 16 * 8 * 800}}};
    const double together = total(dispatch, 1, 1);
    EXPECT_EQ(total(passes, 0, 1), together);
    // 16,000 cycles of loads, beside 12,800 of computation.
    EXPECT_NEAR(total(passes, 1, 1) - together, 12'800, 600);
    EXPECT_NEAR(total(passes, 0.5, 1) - together, 6'400, 600);
    EXPECT_NEAR(total(passes, 1, 4) - together, 3'200, 600);
    // Both in each pass.
    passes.accesses[0].bytes /= 2;
    passes.accesses.push_back(passes.accesses[0]);
    passes.accesses[1].pass = 1;
    passes.passes = {{.operations = {.simple = 16 * 8 * 400}},
                     {.operations = {.simple = 16 * 8 * 400}}};
    EXPECT_NEAR(total(passes, 1, 1), together, 600);
}

// A prefetcher does not find bursts that do not follow each other; a cache that holds them needs
// none.
TEST(NpuReplay, BurstsApartEnterACoreAtTheirOwnRate) {
    constexpr uint64_t kBytes = 1 << 20;
    Description machine = SmallMachine();
    machine.scratchpad.bytes = 8 << 20;
    const auto total = [&](double gbs, Access access) {
        machine.dma.apart_gbs = gbs;
        const Record record = {
            .work = DispatchRecord{.name = "s", .workgroups = 16, .accesses = {std::move(access)}}};
        const ReplayResult both = Replayed(machine, {record, record});
        return static_cast<double>(both.total);
    };
    const MemoryRange range = {1, 0, kBytes};
    constexpr double kRate = 1;  // bytes a cycle; streams reach 4
    const double streams = total(0, {.bytes = kBytes, .range = range});
    EXPECT_EQ(total(0, {.bytes = kBytes, .apart = true, .range = range}), streams);
    EXPECT_EQ(total(kRate, {.bytes = kBytes, .range = range}), streams);
    EXPECT_NEAR(total(kRate, {.bytes = kBytes, .apart = true, .range = range}), 2.0 * kBytes,
                0.01 * kBytes);
    // The second time it is in the cache.
    machine.cache.bytes = 2 * kBytes;
    EXPECT_NEAR(total(kRate, {.bytes = kBytes, .apart = true, .range = range}), kBytes,
                0.05 * kBytes);
    // What stores fetch are reads.
    machine.cache.write_allocate_bytes = 1;
    EXPECT_GT(
        total(kRate,
              {.writes = true, .bytes = kBytes, .apart = true, .in_parts = true, .range = range}),
        kBytes);
}

// What stores read is known at once however many accesses a record has.
TEST(NpuReplay, ARecordOfManyAccessesIsReplayed) {
    Description machine = SmallMachine();
    machine.cache = {.bytes = 1 << 16, .write_allocate_bytes = 1 << 20};
    DispatchRecord dispatch = {.name = "s", .workgroups = 16};
    constexpr uint64_t kAccesses = 100'000;
    for (uint64_t i = 0; i < kAccesses; ++i) {
        dispatch.accesses.push_back({.writes = i % 2 == 1, .bytes = 64, .range = {1 + i, 0, 64}});
    }
    const ReplayResult result = Replayed(machine, {{.work = dispatch}});
    EXPECT_EQ(result.records[0].cost.traffic.dram_read, kAccesses * 64);
}

// The first load, then loads and stores together, then the last store.
TEST(NpuReplay, StreamsOverlapButForTheirEnds) {
    const Description machine = SmallMachine();
    DispatchRecord dispatch = {.name = "s", .workgroups = 16};
    dispatch.accesses = {{.writes = false, .bytes = 16 * 1000},
                         {.writes = true, .bytes = 16 * 400}};
    dispatch.scratchpad = {.least_bytes = 64, .preferred_bytes = 2048};
    const Cycles latency = 7 + 10 + 90;
    // 4 bytes a cycle. Two tiles hide the computation, and each costs a setup.
    Cycles least = UINT64_MAX;
    for (uint64_t tiles = 2; tiles < 1000; tiles *= 2) {
        const Cycles first = (16'000 / tiles + 3) / 4, last = (6400 / tiles + 3) / 4;
        const Cycles middle = (tiles - 1) * 7 + (22'400 - 16'000 / tiles - 6400 / tiles + 3) / 4;
        least = std::min(least, 2 * latency + first + middle + last);
    }
    const ReplayResult result = Replayed(machine, {{.work = dispatch}});
    EXPECT_NEAR(static_cast<double>(result.total), static_cast<double>(1100 + least), 3);
    EXPECT_EQ(result.records[0].bound, Bound::kDram);
    EXPECT_EQ(result.records[0].grant.step, GrantStep::kDoubleBuffered);
    EXPECT_EQ(result.units[static_cast<size_t>(Unit::kDram)].busy, 16U * 1400 / 8);
}

// Where cores move bytes themselves, a part of them passes while nothing is computed.
TEST(NpuReplay, ExposedBytesPassWhileCoresWait) {
    DispatchRecord dispatch = {.name = "s", .workgroups = 16};
    dispatch.accesses = {{.writes = false, .bytes = 16 * 1000},
                         {.writes = true, .bytes = 16 * 400}};
    dispatch.scratchpad = {.least_bytes = 64, .preferred_bytes = 2048};
    const auto total = [&](double exposed) {
        Description machine = SmallMachine();
        machine.dma.exposed = exposed;
        return static_cast<double>(Replayed(machine, {{.work = dispatch}}).total);
    };
    // Moving 22,400 bytes between eight banks of 16 and the units is all of the computation.
    EXPECT_NEAR(total(0.25), total(0), 3);
    EXPECT_NEAR(total(1) - total(0), 22'400.0 / 128, 10);
    // 16,000 cycles of computation hide 5,600 of 22,400 bytes.
    dispatch.operations.simple = 16 * 8 * 1000;
    EXPECT_GT(total(0), 16'000);
    EXPECT_NEAR(total(0.25) - total(0), 1400, 20);
    EXPECT_NEAR(total(1) - total(0), 5600, 60);
}

// Without a second buffer loads, computation and stores take turns, tile by tile.
TEST(NpuReplay, WithoutDoubleBuffersEverythingTakesTurns) {
    Description machine = SmallMachine();
    machine.cores.workgroup_slots = 1;
    machine.scratchpad.bytes = 2048;
    DispatchRecord dispatch = {.name = "s", .workgroups = 16};
    dispatch.accesses = {{.writes = false, .bytes = 16 * 1000},
                         {.writes = true, .bytes = 16 * 400}};
    dispatch.operations.simple = 16 * 8 * 300;
    dispatch.scratchpad = {.least_bytes = 64, .preferred_bytes = 2048};
    const ReplayResult result = Replayed(machine, {{.work = dispatch}});
    EXPECT_EQ(result.records[0].grant.step, GrantStep::kSingleBuffered);
    const UnitCycles units = result.records[0].cost.workgroup;
    EXPECT_EQ(units.vector, 300U);
    const uint64_t tiles = 11;  // of 2048 bytes
    EXPECT_EQ(result.total, 1100 + 2 * tiles * (7 + 10 + 90) + 16 * 1400 / 4 +
                                16 * CyclesOfWorkgroup(units, machine.cores.overlap));
}

TEST(NpuReplay, CopiesShareTheHostLinkAndDram) {
    const Description machine = SmallMachine();
    const Record from_host = {.work = CopyRecord{"c", CopyKind::kFromHost, 8000}};
    const ReplayResult one = Replayed(machine, {from_host});
    EXPECT_EQ(one.total, 1000U + 10 + 20 + 500 + 90 + 4000);
    EXPECT_EQ(one.records[0].bound, Bound::kHostLink);
    // Two in one submission: the second is decoded 20 cycles later, and they share the link.
    const ReplayResult two = Replayed(machine, {from_host, from_host});
    EXPECT_EQ(two.total, 1000U + 10 + 20 + 500 + 90 + 8000);
    EXPECT_EQ(two.host_bytes, 16'000U);
    const ReplayResult fill = Replayed(machine, {{.work = CopyRecord{"f", CopyKind::kFill, 4000}}});
    EXPECT_EQ(fill.traffic.dram_read, 0U);
    EXPECT_EQ(fill.traffic.dram_written, 4000U);
}

TEST(NpuReplay, DependentRecordsFollowEachOtherAndDecodingIsHidden) {
    DispatchRecord dispatch = {.name = "c"};
    dispatch.operations.simple = 8 * 1000;
    const std::vector<Record> records = {{.work = dispatch},
                                         {.work = dispatch, .after = {RecordId(0)}}};
    const ReplayResult result = Replayed(SmallMachine(), records);
    EXPECT_EQ(result.total, 1010U + 20 + 2 * (30 + 1000 + 40));
    EXPECT_EQ(result.records[1].decoded, 1010U + 20 + 30 + 20);
    EXPECT_EQ(result.records[1].ready, result.records[0].ended);
}

// Two programs, each on half of the cores: they only meet where they share.
TEST(NpuReplay, TwoQueuesRunAtOnceAndContendForDram) {
    Description machine = SmallMachine();
    machine.cores.clusters = 2;
    DispatchRecord dispatch = {.name = "s", .workgroups = 1};
    dispatch.accesses = {{.writes = false, .bytes = 400'000}};
    dispatch.scratchpad = {.least_bytes = 64, .preferred_bytes = 4096};
    const std::vector<Record> alone = {{.work = dispatch}};
    const std::vector<Record> both = {{.work = dispatch}, {.work = dispatch, .queue = QueueId(1)}};
    const Cycles one = Replayed(machine, alone).total;
    const ReplayResult two = Replayed(machine, both);
    EXPECT_GT(two.total, one + 90'000);
    EXPECT_LE(two.total, 2 * one);
    EXPECT_EQ(two.records[1].waited_for_cores, 0U);
    // One core: they take turns.
    machine.cores.clusters = 1;
    const ReplayResult turns = Replayed(machine, both);
    EXPECT_GT(turns.records[1].waited_for_cores, 0U);
    EXPECT_GT(turns.units[static_cast<size_t>(Unit::kCommandProcessor)].stall, 0U);
}

SplitProduct FastestOf(const Description& machine, const Product& product) {
    const std::vector<SplitProduct> splits = SplitsOverUnits(machine, product);
    EXPECT_FALSE(splits.empty());
    return *std::ranges::min_element(splits, {}, &SplitProduct::cycles);
}

TEST(NpuReplay, ProductsAreDividedOverAllUnits) {
    const Result<Description> machine = LoadDescription("dc-400");
    ASSERT_TRUE(machine.ok());
    const Product product = {.shape = {.m = 4096, .n = 4096, .k = 4096},
                             .type = MatrixType::kInt8,
                             .a_bytes = 1 << 24,
                             .b_bytes = 1 << 24};
    const SplitProduct split = FastestOf(*machine, product);
    EXPECT_EQ(split.cores, 16U);
    EXPECT_EQ(split.pieces, 128U);
    const double macs = 4096.0 * 4096 * 4096;
    EXPECT_GE(static_cast<double>(split.cycles), macs / 128 / 1024);
    EXPECT_LE(static_cast<double>(split.cycles), 1.5 * macs / 128 / 1024);
    // No piece is empty.
    const SplitProduct small = FastestOf(*machine, {.shape = {4, 4, 4}, .type = MatrixType::kInt8});
    EXPECT_LE(small.pieces, 16U);
}

TEST(NpuReplay, SmallScratchpadsReadOperandsAgain) {
    Description machine = *LoadDescription("edge-4");
    const Product product = {.shape = {.m = 2048, .n = 2048, .k = 2048},
                             .type = MatrixType::kInt8,
                             .a_bytes = 1 << 22,
                             .b_bytes = 1 << 22};
    const uint64_t before = FastestOf(machine, product).read_again;
    EXPECT_GT(before, 0U);
    machine.scratchpad.bytes = 64 << 20;
    EXPECT_EQ(FastestOf(machine, product).read_again, 0U);
}

TEST(NpuReplay, TypesWithoutARateAreOnTheVectorUnits) {
    const Description machine = *LoadDescription("edge-4");
    const ProductShape shape = {.m = 64, .n = 64, .k = 64};
    const ReplayResult f32 =
        Replayed(machine, {{.work = ProductRecord("p", shape, MatrixType::kF32)}});
    EXPECT_EQ(f32.records[0].cost.macs_on_vector_units, 64U * 64 * 64);
    EXPECT_EQ(f32.units[static_cast<size_t>(Unit::kMatrix)].busy, 0U);
    EXPECT_EQ(f32.energy.matrix_nj, 0);
    const ReplayResult int8 =
        Replayed(machine, {{.work = ProductRecord("p", shape, MatrixType::kInt8)}});
    EXPECT_EQ(int8.records[0].cost.macs_on_vector_units, 0U);
    EXPECT_GT(int8.units[static_cast<size_t>(Unit::kMatrix)].busy, 0U);
}

TEST(NpuReplay, BadRecordsAreNamed) {
    const Description machine = SmallMachine();
    DispatchRecord dispatch = {.name = "d"};
    dispatch.scratchpad = {.least_bytes = 1 << 20, .preferred_bytes = 1 << 20, .may_spill = false};
    Result<ReplayResult> result = Replay(machine, std::vector<Record>{{.work = dispatch}});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kOutOfDeviceMemory);
    EXPECT_EQ(result.error().message,
              "d needs at least 1048576 bytes of scratchpad and may not spill; scratchpad.bytes of "
              "edge-4 is 524288.");
    dispatch.scratchpad.may_spill = true;
    const ReplayResult spilt = Replayed(machine, {{.work = dispatch}});
    EXPECT_EQ(spilt.traffic.spill, 2U * ((1 << 20) - 524'288));
    EXPECT_EQ(spilt.traffic.dram(), spilt.traffic.spill);

    const auto error_of = [&](const Record& record) {
        const Result<ReplayResult> bad = Replay(machine, std::vector<Record>{record});
        return bad.ok() ? "" : bad.error().message;
    };
    EXPECT_THAT(error_of({.work = DispatchRecord{.name = "d"}, .after = {RecordId(0)}}),
                HasSubstr("Record 0 (d) waits for record 0, which is not an earlier one."));
    EXPECT_THAT(error_of({.work = DispatchRecord{.name = "d", .workgroups = 0}}),
                HasSubstr("has 0 workgroups; it must be from 1"));
    EXPECT_THAT(error_of({.work = CopyRecord{"c", CopyKind::kFill, kMaxCount + 1}}),
                HasSubstr("at most"));
    DispatchRecord huge = {.name = "h"};
    huge.products = {{.shape = {uint64_t{1} << 40, uint64_t{1} << 40, 2}}};
    EXPECT_THAT(error_of({.work = huge}), HasSubstr("multiply-accumulates"));
    DispatchRecord passes = {.name = "p"};
    passes.accesses = {{.bytes = 4, .pass = 1}};
    EXPECT_THAT(error_of({.work = passes}), HasSubstr("has 1 as the pass of an access"));
    passes.passes.resize(2);
    EXPECT_EQ(error_of({.work = passes}), "");
    passes.products = {{.shape = {1, 1, 1}, .pass = 2}};
    EXPECT_THAT(error_of({.work = passes}), HasSubstr("has 2 as the pass of a product"));
    passes.products.clear();
    passes.passes[0].operations.special = kMaxCount + 1;
    EXPECT_THAT(error_of({.work = passes}), HasSubstr("operations or bytes of a pass"));
    passes.passes.assign(kMaxPasses + 1, {});
    EXPECT_THAT(error_of({.work = passes}), HasSubstr("has 65 passes"));
    EXPECT_THAT(error_of({.work = DispatchRecord{.name = "d"}, .queue = QueueId(kMaxQueues)}),
                HasSubstr("queue 4096"));
}

}  // namespace
}  // namespace fornax::npu
