#include "npu/replay/invariants.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "npu/units/dram.h"
#include "npu/units/energy.h"
#include "npu/units/network.h"

namespace fornax::npu {

namespace {

template <typename... Values>
Error Broken(fmt::format_string<Values...> text, Values&&... values) {
    return {ErrorCode::kInternal, fmt::format(text, std::forward<Values>(values)...)};
}

Error BrokenBy(const ReplayedProgram& program, size_t record, std::string_view what) {
    return Broken("record {} ({}) {}", record, program.records[record].name(), what);
}

Status UnitsAddUp(const ReplayedProgram& program) {
    for (uint32_t i = 0; i < kUnits; ++i) {
        const UnitTime& unit = program.result.units[i];
        const Cycles all = unit.instances * program.result.total;
        if (unit.busy + unit.stall + unit.idle != all || std::max(unit.busy, unit.stall) > all) {
            return Broken("the {} is busy {}, stalls {} and is idle {} of {} cycles", kUnitNames[i],
                          unit.busy, unit.stall, unit.idle, all);
        }
    }
    return OkStatus();
}

Status TimesAreInOrder(const ReplayedProgram& program) {
    for (size_t i = 0; i < program.records.size(); ++i) {
        const RecordTime& time = program.result.records[i];
        if (!std::ranges::is_sorted(
                std::array{time.decoded, time.ready, time.began, time.finished, time.ended}) ||
            time.ended > program.result.total) {
            return BrokenBy(program, i, "ends before it begins, or behind the whole");
        }
        for (const RecordId before : program.records[i].after) {
            if (program.result.records[before.value()].ended > time.ready) {
                return BrokenBy(program, i, "does not wait for what comes before it");
            }
        }
    }
    return OkStatus();
}

Status TimelineIsTheSums(const ReplayedProgram& program) {
    const auto& [machine, records, result, timeline] = program;
    uint64_t dram = 0, network = 0, host = 0;
    for (const FlowTime& flow : timeline.flows) {
        const RecordTime& time = result.records[flow.record];
        if (flow.began < time.began || flow.ended <= flow.began || flow.ended > time.finished) {
            return BrokenBy(program, flow.record, "moves bytes outside of its own time");
        }
        (flow.unit == Unit::kDram      ? dram
         : flow.unit == Unit::kNetwork ? network
                                       : host) += flow.bytes;
    }
    if (dram != result.traffic.dram() || network != result.traffic.network ||
        host != result.host_bytes) {
        return Broken(
            "flows have {}, {} and {} bytes of DRAM, network and host link, and the sums "
            "{}, {} and {}",
            dram, network, host, result.traffic.dram(), result.traffic.network, result.host_bytes);
    }
    Cycles jobs = 0, last = 0;
    for (const ProcessorJobTime& job : timeline.jobs) {
        if (job.began < last) {
            return BrokenBy(program, job.record, "is decoded or allocated beside another one");
        }
        last = job.ended;
        jobs += job.ended - job.began;
    }
    if (jobs != result.units[static_cast<size_t>(Unit::kCommandProcessor)].busy) {
        return Broken("the command processor's jobs take {} cycles, and it is busy for others",
                      jobs);
    }
    for (const ComputeTime& compute : timeline.computations) {
        const RecordTime& time = result.records[compute.record];
        if (compute.began < time.began || compute.ended > time.finished) {
            return BrokenBy(program, compute.record, "computes outside of its own time");
        }
    }
    for (const SubmissionTime& submission : timeline.submissions) {
        if (submission.began > submission.submitted ||
            submission.available > result.records[submission.first_record].decoded) {
            return BrokenBy(program, submission.first_record, "runs before it is submitted");
        }
    }
    return OkStatus();
}

Status BytesAndEnergyAreTheRecords(const ReplayedProgram& program) {
    const auto& [machine, records, result, timeline] = program;
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
    }
    for (const auto& [what, sum, others] :
         {std::tuple("DRAM", result.traffic.dram(),
                     std::array{traffic.dram(), phase_dram, events.dram_bytes}),
          std::tuple("the network", result.traffic.network,
                     std::array{traffic.network, phase_network, events.network_bytes})}) {
        if (std::ranges::any_of(others, [sum = sum](uint64_t other) { return other != sum; })) {
            return Broken(
                "{} moves {} bytes; of the records {}, of their phases {}, of the energy "
                "{}",
                what, sum, others[0], others[1], others[2]);
        }
    }
    const double energy = EnergyOf(machine, events, result.total).total_nj();
    if (energy != result.energy.total_nj()) {
        return Broken("the energy is {} nJ, of the records' events {}", result.energy.total_nj(),
                      energy);
    }
    return OkStatus();
}

// Bytes that nothing can serve: of streams that caches of cores may serve, those of the first one
// to each memory.
uint64_t CompulsoryBytes(const Description& machine, std::span<const Record> records) {
    uint64_t bytes = 0;
    std::set<uint64_t> touched;
    for (const Record& record : records) {
        const auto* dispatch = std::get_if<DispatchRecord>(&record.work);
        if (dispatch == nullptr) {
            continue;
        }
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
    return bytes;
}

Status NoTimeIsBelowWorkOverPeak(const ReplayedProgram& program) {
    const auto& [machine, records, result, timeline] = program;
    const auto total = static_cast<double>(result.total);
    double products = 0;
    for (uint32_t i = 0; i < kMatrixTypes; ++i) {
        const auto macs = static_cast<double>(result.events.multiply_accumulates[i]);
        products += macs > 0 ? macs / machine.matrix.rate(static_cast<MatrixType>(i)) : 0;
    }
    products /= static_cast<double>(machine.cores.count() * machine.matrix.units *
                                    machine.matrix.rows * machine.matrix.columns);
    const double dram = static_cast<double>(result.traffic.dram()) / DramBytesPerCycle(machine);
    const double network =
        static_cast<double>(result.traffic.network) / NetworkBytesPerCycle(machine);
    // Flows end at whole cycles.
    if (total < products || total + 1 < std::max(dram, network)) {
        return Broken(
            "{} cycles are less than products ({:.1f}), DRAM ({:.1f}) or the network "
            "({:.1f}) take at their peaks",
            result.total, products, dram, network);
    }
    const uint64_t bytes = CompulsoryBytes(machine, records);
    const uint64_t moved = machine.cache.bytes == 0 && machine.cache.core_bytes == 0
                               ? result.traffic.dram()
                               : result.traffic.network;
    if (moved < bytes) {
        return Broken("{} bytes are moved, and {} have to be", moved, bytes);
    }
    return OkStatus();
}

Status TogetherIsNotSlower(const ReplayedProgram& program) {
    Cycles serial = 0;
    for (size_t i = 0; i < program.records.size() && serial < program.result.total; ++i) {
        Record alone = program.records[i];
        alone.after.clear();
        FORNAX_ASSIGN_OR_RETURN(const ReplayResult result,
                                Replay(program.machine, std::span(&alone, 1)));
        serial += result.total;
    }
    return serial >= program.result.total
               ? OkStatus()
               : Status(Broken("together the records take {} cycles, one after the other {}",
                               program.result.total, serial));
}

// In cycles, a machine of twice the clock and bandwidths and half the latencies is the same.
Status CyclesDoNotDependOnTheClock(const ReplayedProgram& program) {
    Description twice = program.machine;
    twice.cores.clock_ghz *= 2;
    for (double* bandwidth : {&twice.dma.port_gbs, &twice.dma.stream_gbs, &twice.dma.apart_gbs,
                              &twice.dma.far_gbs, &twice.network.bandwidth_gbs,
                              &twice.dram.bandwidth_gbs, &twice.host_link.bandwidth_gbs}) {
        *bandwidth *= 2;
    }
    Description::CommandProcessor& launch = twice.command_processor;
    for (double* latency : {&twice.dma.setup_ns, &twice.network.latency_ns, &twice.dram.latency_ns,
                            &twice.host_link.latency_ns, &launch.doorbell_ns, &launch.decode_ns,
                            &launch.allocation_ns, &launch.drain_ns, &launch.driver_us}) {
        *latency /= 2;
    }
    FORNAX_ASSIGN_OR_RETURN(const ReplayResult result, Replay(twice, program.records));
    return result.total == program.result.total
               ? OkStatus()
               : Status(Broken("{} cycles become {} at twice the speed", program.result.total,
                               result.total));
}

Status ReplaysAreEqual(const ReplayedProgram& program) {
    FORNAX_ASSIGN_OR_RETURN(const ReplayResult again, Replay(program.machine, program.records));
    for (size_t i = 0; i < program.records.size(); ++i) {
        if (again.records[i].ended != program.result.records[i].ended) {
            return BrokenBy(program, i, "ends at another time in a second replay");
        }
    }
    return again.total == program.result.total &&
                   again.energy.total_nj() == program.result.energy.total_nj()
               ? OkStatus()
               : Status(Broken("a second replay has another time or energy"));
}

constexpr Invariant kInvariants[] = {
    {"busy, stall and idle add up", UnitsAddUp},
    {"times are in order", TimesAreInOrder},
    {"the timeline is what the sums are made of", TimelineIsTheSums},
    {"bytes and energy are those of the records", BytesAndEnergyAreTheRecords},
    {"no time is below work over peak", NoTimeIsBelowWorkOverPeak},
    {"together is not slower than one after the other", TogetherIsNotSlower},
    {"cycles do not depend on the clock", CyclesDoNotDependOnTheClock},
    {"replays are equal", ReplaysAreEqual},
};

}  // namespace

std::span<const Invariant> Invariants() {
    return kInvariants;
}

Status CheckInvariants(const Description& machine, std::span<const Record> records) {
    Timeline timeline;
    FORNAX_ASSIGN_OR_RETURN(const ReplayResult result, Replay(machine, records, &timeline));
    for (const Invariant& invariant : kInvariants) {
        const Status status = invariant.check({machine, records, result, timeline});
        if (!status.ok()) {
            return Error{status.error().code,
                         fmt::format("{}: {}.", invariant.name, status.error().message)};
        }
    }
    return OkStatus();
}

}  // namespace fornax::npu
