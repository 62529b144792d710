// What holds for all programs on all machines, tried with random ones.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "npu/description/read.h"
#include "npu/replay/replay.h"
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

TEST(NpuInvariants, TimesOfUnitsAddUp) {
    ForRandomPrograms(
        {.queues = 3}, [](const Description& machine, const std::vector<Record>& records) {
            const ReplayResult result = Replayed(machine, records);
            for (uint32_t i = 0; i < kUnits; ++i) {
                const UnitTime& unit = result.units[i];
                EXPECT_EQ(unit.busy + unit.stall + unit.idle, unit.instances * result.total)
                    << kUnitNames[i];
                EXPECT_LE(unit.busy, unit.instances * result.total) << kUnitNames[i];
                EXPECT_LE(unit.stall, unit.instances * result.total) << kUnitNames[i];
            }
        });
}

TEST(NpuInvariants, TheTimelineIsWhatTheSumsAreMadeOf) {
    ForRandomPrograms(
        {.queues = 3}, [](const Description& machine, const std::vector<Record>& records) {
            Timeline timeline;
            const Result<ReplayResult> replayed = Replay(machine, records, &timeline);
            ASSERT_TRUE(replayed.ok()) << replayed.error().message;
            const ReplayResult& result = *replayed;
            EXPECT_EQ(result.total, Replayed(machine, records).total);
            uint64_t dram = 0, network = 0, host = 0;
            for (const FlowTime& flow : timeline.flows) {
                const RecordTime& time = result.records[flow.record];
                EXPECT_GE(flow.began, time.began);
                EXPECT_GT(flow.ended, flow.began);
                EXPECT_LE(flow.ended, time.finished);
                (flow.unit == Unit::kDram      ? dram
                 : flow.unit == Unit::kNetwork ? network
                                               : host) += flow.bytes;
            }
            EXPECT_EQ(dram, result.traffic.dram());
            EXPECT_EQ(network, result.traffic.network);
            EXPECT_EQ(host, result.host_bytes);
            Cycles jobs = 0, last = 0;
            for (const ProcessorJobTime& job : timeline.jobs) {
                EXPECT_GE(job.began, last);
                last = job.ended;
                jobs += job.ended - job.began;
            }
            EXPECT_EQ(jobs, result.units[static_cast<size_t>(Unit::kCommandProcessor)].busy);
            for (const ComputeTime& compute : timeline.computations) {
                const RecordTime& time = result.records[compute.record];
                EXPECT_GE(compute.began, time.began);
                EXPECT_LE(compute.ended, time.finished);
            }
            for (const SubmissionTime& submission : timeline.submissions) {
                EXPECT_LE(submission.began, submission.submitted);
                EXPECT_LE(submission.available, result.records[submission.first_record].decoded);
            }
        });
}

TEST(NpuInvariants, NoTimeIsBelowWorkOverPeak) {
    ForRandomPrograms(
        {.queues = 2}, [](const Description& machine, const std::vector<Record>& records) {
            const ReplayResult result = Replayed(machine, records);
            const auto total = static_cast<double>(result.total);
            double matrix = 0;
            for (uint32_t i = 0; i < kMatrixTypes; ++i) {
                const double rate = machine.matrix.rate(static_cast<MatrixType>(i));
                const auto macs = static_cast<double>(result.events.multiply_accumulates[i]);
                matrix += macs > 0 ? macs / rate : 0;
            }
            EXPECT_GE(total,
                      matrix / static_cast<double>(machine.cores.count() * machine.matrix.units *
                                                   machine.matrix.rows * machine.matrix.columns));
            EXPECT_GE(total + 1,
                      static_cast<double>(result.traffic.dram()) / DramBytesPerCycle(machine));
            EXPECT_GE(total + 1,
                      static_cast<double>(result.traffic.network) / NetworkBytesPerCycle(machine));
            // Compulsory bytes are those of the records; of streams that caches of cores may
            // serve, those of the first one to each memory.
            uint64_t bytes = 0;
            std::set<uint64_t> touched;
            for (const Record& record : records) {
                if (const auto* dispatch = std::get_if<DispatchRecord>(&record.work)) {
                    for (const Access& access : dispatch->accesses) {
                        const uint64_t once = access.bytes - access.repeated_bytes;
                        const uint64_t memory = access.range.memory;
                        if (machine.cache.core_bytes == 0 || memory == 0 ||
                            access.kind != AccessKind::kStream) {
                            bytes += once;
                        } else if (touched.insert(memory).second) {
                            bytes += std::min(once, access.range.bytes);
                        }
                    }
                }
            }
            if (machine.cache.bytes == 0) {
                EXPECT_GE(result.traffic.dram(), bytes);
            } else {
                EXPECT_GE(result.traffic.network, bytes);
            }
        });
}

TEST(NpuInvariants, TogetherIsNotSlowerThanOneAfterTheOther) {
    ForRandomPrograms({.queues = 3},
                      [](const Description& machine, const std::vector<Record>& records) {
                          Cycles serial = 0;
                          for (Record record : records) {
                              record.after.clear();
                              serial += Replayed(machine, std::vector<Record>{record}).total;
                          }
                          EXPECT_LE(Replayed(machine, records).total, serial);
                      });
}

TEST(NpuInvariants, BytesAndEnergyAreThoseOfTheRecords) {
    ForRandomPrograms({.queues = 3}, [](const Description& machine,
                                        const std::vector<Record>& records) {
        const ReplayResult result = Replayed(machine, records);
        Traffic traffic;
        EnergyEvents events;
        uint64_t phase_dram = 0, phase_network = 0;
        for (size_t i = 0; i < records.size(); ++i) {
            const RecordTime& time = result.records[i];
            traffic += time.cost.traffic;
            events += time.cost.events;
            const auto* copy = std::get_if<CopyRecord>(&records[i].work);
            for (const Phase& phase : copy != nullptr ? PhasesOf(machine, *copy)
                                                      : PhasesOf(machine, time.cost, time.grant)) {
                phase_dram += phase.dram_bytes;
                phase_network += phase.network_bytes;
            }
            EXPECT_LE(time.decoded, time.ready);
            EXPECT_LE(time.ready, time.began);
            EXPECT_LE(time.began, time.finished);
            EXPECT_LE(time.finished, time.ended);
            for (const RecordId before : records[i].after) {
                EXPECT_LE(result.records[before.value()].ended, time.ready);
            }
        }
        EXPECT_EQ(result.traffic.dram(), traffic.dram());
        EXPECT_EQ(result.traffic.network, traffic.network);
        EXPECT_EQ(phase_dram, traffic.dram());
        EXPECT_EQ(phase_network, traffic.network);
        EXPECT_EQ(events.dram_bytes, traffic.dram());
        EXPECT_EQ(events.network_bytes, traffic.network);
        const Energy energy = EnergyOf(machine, events, result.total);
        EXPECT_EQ(energy.total_nj(), result.energy.total_nj());
    });
}

TEST(NpuInvariants, FasterClocksAndShorterLatenciesLeaveCyclesAlone) {
    ForRandomPrograms({.queues = 3}, [](const Description& machine,
                                        const std::vector<Record>& records) {
        Description twice = machine;
        twice.cores.clock_ghz *= 2;
        for (double* bandwidth : {&twice.dma.port_gbs, &twice.dma.stream_gbs, &twice.dma.apart_gbs,
                                  &twice.dma.far_gbs, &twice.network.bandwidth_gbs,
                                  &twice.dram.bandwidth_gbs, &twice.host_link.bandwidth_gbs}) {
            *bandwidth *= 2;
        }
        Description::CommandProcessor& launch = twice.command_processor;
        for (double* latency :
             {&twice.dma.setup_ns, &twice.network.latency_ns, &twice.dram.latency_ns,
              &twice.host_link.latency_ns, &launch.doorbell_ns, &launch.decode_ns,
              &launch.allocation_ns, &launch.drain_ns, &launch.driver_us}) {
            *latency /= 2;
        }
        EXPECT_EQ(Replayed(machine, records).total, Replayed(twice, records).total);
    });
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
