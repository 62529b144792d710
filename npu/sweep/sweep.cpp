#include "npu/sweep/sweep.h"

#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <thread>
#include <tuple>

#include "npu/replay/replay.h"
#include "npu/units/area.h"

namespace fornax::npu {
namespace {

double BusyPart(const UnitTime& unit) {
    const Cycles all = unit.busy + unit.stall + unit.idle;
    return all == 0 ? 0 : static_cast<double>(unit.busy) / static_cast<double>(all);
}

SweepRow RowOf(const Description& description, std::span<const std::vector<Record>> programs) {
    SweepRow row;
    double matrix_ns = 0, dram_ns = 0;
    for (const std::vector<Record>& program : programs) {
        const Result<ReplayResult> result = Replay(description, program);
        if (!result.ok()) {
            row = SweepRow();
            row.failure = result.error().message;
            return row;
        }
        const double ns = description.Nanoseconds(static_cast<double>(result->total));
        row.program_ns.push_back(ns);
        row.time_ns += ns;
        row.energy_nj += result->energy.total_nj();
        row.dram_bytes += result->traffic.dram();
        row.spill_bytes += result->traffic.spill;
        matrix_ns += ns * BusyPart(result->units[static_cast<size_t>(Unit::kMatrix)]);
        dram_ns += ns * BusyPart(result->units[static_cast<size_t>(Unit::kDram)]);
    }
    row.description = description.Hash();
    row.area_mm2 = AreaProxyOf(description).total_mm2();
    row.matrix_busy = row.time_ns > 0 ? matrix_ns / row.time_ns : 0;
    row.dram_busy = row.time_ns > 0 ? dram_ns / row.time_ns : 0;
    return row;
}

}  // namespace

Status CheckSpace(const Space& space) {
    for (uint64_t i = 0; i < space.count(); ++i) {
        if (const Result<Description> description = space.At(i); !description.ok()) {
            return description.error();
        }
    }
    return OkStatus();
}

Result<std::vector<SweepRow>> RunSweep(const Space& space,
                                       std::span<const std::vector<Record>> programs,
                                       const SweepOptions& options) {
    for (const std::vector<Record>& program : programs) {
        FORNAX_RETURN_IF_ERROR(CheckRecords(program));
    }
    if (!options.skip_contradictions) {
        FORNAX_RETURN_IF_ERROR(CheckSpace(space));
    }
    const uint64_t first = std::min(options.first, space.count());
    const uint64_t count = std::max(first, std::min(options.last, space.count())) - first;
    std::vector<SweepRow> rows(count);
    std::atomic<uint64_t> next = 0, done = 0;
    const auto work = [&] {
        for (uint64_t i = next++; i < count; i = next++) {
            const Result<Description> description = space.At(first + i);
            if (description.ok()) {
                rows[i] = RowOf(*description, programs);
            } else {
                rows[i].failure = description.error().message;
            }
            ++done;
        }
    };
    {
        std::vector<std::jthread> threads;
        const uint64_t wanted = std::min<uint64_t>(std::max(options.threads, 1U), count);
        for (uint64_t i = 0; i < wanted; ++i) {
            threads.emplace_back(work);
        }
        while (options.progress && done < count) {
            options.progress(done, count);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }
    return rows;
}

std::vector<uint64_t> ParetoFront(std::span<const SweepRow> rows) {
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < rows.size(); ++i) {
        if (rows[i].failure.empty()) {
            order.push_back(i);
        }
    }
    std::ranges::sort(order, {}, [&](uint64_t i) {
        return std::tuple(rows[i].time_ns, rows[i].energy_nj, rows[i].area_mm2, i);
    });
    // The least area for at most so much energy among the rows before, none of which takes longer.
    std::map<double, double> least_area;  // descending in area
    std::vector<uint64_t> front;
    for (const uint64_t i : order) {
        const SweepRow& row = rows[i];
        const auto above = least_area.upper_bound(row.energy_nj);
        if (above != least_area.begin() && std::prev(above)->second <= row.area_mm2) {
            continue;
        }
        front.push_back(i);
        auto worse = least_area.lower_bound(row.energy_nj);
        while (worse != least_area.end() && worse->second >= row.area_mm2) {
            worse = least_area.erase(worse);
        }
        least_area[row.energy_nj] = row.area_mm2;
    }
    return front;
}

}  // namespace fornax::npu
