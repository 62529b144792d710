// What holds for all programs on all machines, tried with random ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "npu/description/read.h"
#include "npu/replay/invariants.h"
#include "npu/replay/test_records.h"
#include "npu/units/network.h"

namespace fornax::npu {
namespace {

constexpr uint64_t kPrograms = 300;

std::vector<Description> Machines() {
    std::vector<Description> machines;
    for (const Preset& preset : Presets()) {
        machines.push_back(*LoadDescription(std::string(preset.name)));
    }
    Description tiny = machines[0];
    tiny.scratchpad.bytes = 8192;
    tiny.cores.per_cluster = 3;
    tiny.matrix.rate_f32 = 0.125;
    tiny.matrix.dataflow = Dataflow::kBest;
    tiny.scratchpad.policy = ScratchpadPolicy::kBuddy;
    machines.push_back(tiny);
    Description cached = machines[1];
    cached.cache.bytes = 1 << 18;
    machines.push_back(cached);
    cached.cache.write_allocate_bytes = 1 << 17;
    cached.vector.multiply_add_interval = 1.7;
    cached.special.unit = SpecialUnit::kVector;
    machines.push_back(cached);
    cached.dma.exposed = 0.37;
    machines.push_back(cached);
    cached.dma.apart_gbs = 0.5;
    cached.dma.far_gbs = 0.2;
    cached.dma.stream_gbs = 1.5;
    machines.push_back(cached);
    cached.dma.barrier_exposed = 0.8;
    machines.push_back(cached);
    cached.cache.core_bytes = 1 << 16;
    machines.push_back(cached);
    return machines;
}

ReplayResult Replayed(const Description& machine, std::span<const Record> records) {
    Result<ReplayResult> result = Replay(machine, records);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? std::move(result).value() : ReplayResult();
}

template <typename Check>
void ForRandomPrograms(const RandomOptions& options, const Check& check) {
    const std::vector<Description> machines = Machines();
    for (uint64_t seed = 0; seed < kPrograms; ++seed) {
        SCOPED_TRACE(seed);
        check(machines[seed % machines.size()], RandomRecords(seed, options));
        if (::testing::Test::HasFailure()) {
            return;
        }
    }
}

TEST(NpuInvariants, HoldForRandomPrograms) {
    for (const Invariant& invariant : Invariants()) {
        SCOPED_TRACE(invariant.name);
        ForRandomPrograms(
            {.queues = 3}, [&](const Description& machine, const std::vector<Record>& records) {
                Timeline timeline;
                const Result<ReplayResult> result = Replay(machine, records, &timeline);
                ASSERT_TRUE(result.ok()) << result.error().message;
                const Status holds = invariant.check({machine, records, *result, timeline});
                EXPECT_TRUE(holds.ok()) << holds.error().message;
            });
    }
}

// Each of them fails for some change of a replay's result.
TEST(NpuInvariants, AreBrokenByOtherNumbers) {
    using Change = void (*)(ReplayResult&, Timeline&);
    const std::pair<std::string_view, Change> kChanges[] = {
        {"busy, stall and idle add up",
         [](ReplayResult& result, Timeline&) { result.units[2].idle += 1; }},
        {"times are in order",
         [](ReplayResult& result, Timeline&) { result.records[0].began = result.total + 1; }},
        {"the timeline is what the sums are made of",
         [](ReplayResult&, Timeline& timeline) { timeline.flows[0].bytes += 1; }},
        {"bytes and energy are those of the records",
         [](ReplayResult& result, Timeline&) { result.records[0].cost.traffic.network += 1; }},
        {"no time is below work over peak",
         [](ReplayResult& result, Timeline&) { result.total /= 1000; }},
        {"together is not slower than one after the other",
         [](ReplayResult& result, Timeline&) { result.total *= 1000; }},
        {"cycles do not depend on the clock",
         [](ReplayResult& result, Timeline&) { result.total += 1; }},
        {"replays are equal",
         [](ReplayResult& result, Timeline&) { result.records[1].ended += 1; }},
    };
    ASSERT_EQ(std::size(kChanges), Invariants().size());
    const Description machine = *LoadDescription("edge-4");
    const std::vector<Record> records = {
        {.work = StreamRecord("a", 1 << 20, 1 << 18)},
        {.work = ProductRecord("b", {256, 256, 256}, MatrixType::kInt8), .after = {RecordId(0)}}};
    EXPECT_TRUE(CheckInvariants(machine, records).ok());
    EXPECT_TRUE(CheckInvariants(machine, {}).ok());
    for (const auto& [name, change] : kChanges) {
        SCOPED_TRACE(name);
        const auto invariant = std::ranges::find(Invariants(), name, &Invariant::name);
        ASSERT_NE(invariant, Invariants().end());
        Timeline timeline;
        ReplayResult result = Replay(machine, records, &timeline).value();
        EXPECT_TRUE(invariant->check({machine, records, result, timeline}).ok());
        change(result, timeline);
        const Status broken = invariant->check({machine, records, result, timeline});
        ASSERT_FALSE(broken.ok());
        EXPECT_EQ(broken.error().code, ErrorCode::kInternal);
    }
}

// Without contention: the records of a chain never run at once.
TEST(NpuInvariants, MoreOfAnythingNeverSlows) {
    using Change = void (*)(Description&);
    const std::pair<const char*, Change> kChanges[] = {
        {"DRAM bandwidth", [](Description& machine) { machine.dram.bandwidth_gbs *= 1.7; }},
        {"network bandwidth", [](Description& machine) { machine.network.bandwidth_gbs *= 1.3; }},
        {"host link", [](Description& machine) { machine.host_link.bandwidth_gbs *= 3; }},
        {"cores", [](Description& machine) { machine.cores.per_cluster += 1; }},
        {"clusters", [](Description& machine) { machine.cores.clusters *= 2; }},
        {"matrix units", [](Description& machine) { machine.matrix.units += 1; }},
        {"scratchpad", [](Description& machine) { machine.scratchpad.bytes *= 2; }},
        {"engines", [](Description& machine) { machine.dma.engines += 1; }},
        {"outstanding", [](Description& machine) { machine.dma.outstanding += 5; }},
        {"vector bits", [](Description& machine) { machine.vector.bits *= 2; }},
        {"special lanes", [](Description& machine) { machine.special.lanes *= 2; }},
        {"DRAM latency", [](Description& machine) { machine.dram.latency_ns /= 3; }},
        {"launch", [](Description& machine) { machine.command_processor.decode_ns /= 2; }},
    };
    for (const auto& [name, change] : kChanges) {
        SCOPED_TRACE(name);
        ForRandomPrograms(
            {.queues = 1, .chained = true},
            [change = change](const Description& machine, const std::vector<Record>& records) {
                Description more = machine;
                change(more);
                EXPECT_LE(Replayed(more, records).total, Replayed(machine, records).total);
            });
    }
}

// Every number of two replays, whatever the threads.
std::vector<uint64_t> NumbersOf(const ReplayResult& result) {
    std::vector<uint64_t> numbers = {result.total, result.cores_held};
    for (const RecordTime& time : result.records) {
        numbers.insert(numbers.end(), {time.decoded, time.ready, time.began, time.finished,
                                       time.ended, time.grant.offset, time.grant.bytes});
    }
    for (const UnitTime& unit : result.units) {
        numbers.insert(numbers.end(), {unit.busy, unit.stall, unit.idle});
    }
    numbers.push_back(std::bit_cast<uint64_t>(result.energy.total_nj()));
    return numbers;
}

TEST(NpuInvariants, ReplaysAreEqualOnAllThreads) {
    ForRandomPrograms(
        {.queues = 4}, [](const Description& machine, const std::vector<Record>& records) {
            const std::vector<uint64_t> expected = NumbersOf(Replayed(machine, records));
            std::vector<std::vector<uint64_t>> found(3);
            std::vector<std::thread> threads;
            for (auto& numbers : found) {
                threads.emplace_back([&] { numbers = NumbersOf(Replayed(machine, records)); });
            }
            for (std::thread& thread : threads) {
                thread.join();
            }
            for (const auto& numbers : found) {
                EXPECT_EQ(numbers, expected);
            }
        });
}

}  // namespace
}  // namespace fornax::npu
