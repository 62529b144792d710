#include "tools/replay/profile.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <queue>

namespace fornax::tool {
namespace {

using npu::Cycles;

void Add(KernelProfile& kernel,
         std::array<Cycles, npu::kBounds>& bounds,
         const npu::RecordTime& time) {
    const Cycles cycles = time.ended - time.ready;
    ++kernel.count;
    kernel.time += cycles;
    kernel.run += time.finished - time.began;
    kernel.launch += time.launch;
    kernel.waited += time.waited_for_cores;
    bounds[static_cast<size_t>(time.bound)] += cycles;
    const npu::EnergyEvents& events = time.cost.events;
    kernel.multiply_accumulates += std::accumulate(events.multiply_accumulates.begin(),
                                                   events.multiply_accumulates.end(), uint64_t{0});
    kernel.vector_operations += events.vector_operations;
    kernel.special_operations += events.special_operations;
    kernel.traffic += time.cost.traffic;
    kernel.host_bytes += time.cost.host_bytes;
    kernel.most_cores = std::max(kernel.most_cores, time.cost.cores);
    kernel.matrix_busy += time.cost.busy.matrix;
}

// The work that takes the time, if a line can do it.
std::optional<npu::LineWork> WorkOf(const npu::RecordTime& time) {
    switch (time.bound) {
        case npu::Bound::kMatrix:
            return npu::LineWork::kProducts;
        case npu::Bound::kVector:
            return 2 * time.cost.macs_on_vector_units > time.cost.events.vector_operations
                       ? npu::LineWork::kProducts
                       : npu::LineWork::kOperations;
        case npu::Bound::kSpecial:
            return npu::LineWork::kSpecial;
        case npu::Bound::kScratchpad:
            return npu::LineWork::kScratchpad;
        case npu::Bound::kDma:
        case npu::Bound::kNetwork:
        case npu::Bound::kDram:
            return npu::LineWork::kBytes;
        case npu::Bound::kLaunch:
        case npu::Bound::kScalar:
        case npu::Bound::kHostLink:
            break;
    }
    return std::nullopt;
}

void AddLine(KernelProfile& kernel, const npu::Record& record, const npu::RecordTime& time) {
    const auto* dispatch = std::get_if<npu::DispatchRecord>(&record.work);
    const Cycles cycles = time.ended - time.ready;
    if (dispatch == nullptr || cycles <= kernel.longest) {
        return;
    }
    kernel.longest = cycles;
    kernel.line.clear();
    kernel.line_percent = 0;
    const std::optional<npu::LineWork> work = WorkOf(time);
    for (const npu::SourceLine& line : dispatch->lines) {
        if (line.work == work) {
            kernel.line = line.line;
            kernel.line_percent = line.percent;
        }
    }
}

void MakeKernels(Profile& profile) {
    std::map<std::pair<bool, std::string_view>, uint32_t> numbers;
    std::vector<std::array<Cycles, npu::kBounds>> bounds;
    std::vector<KernelProfile> kernels;
    for (size_t i = 0; i < profile.records.size(); ++i) {
        const npu::Record& record = profile.records[i];
        const npu::RecordTime& time = profile.result.records[i];
        const bool is_copy = std::holds_alternative<npu::CopyRecord>(record.work);
        const auto [found, is_new] =
            numbers.try_emplace({is_copy, record.name()}, static_cast<uint32_t>(kernels.size()));
        if (is_new) {
            kernels.push_back({.name = record.name(), .is_copy = is_copy});
            bounds.emplace_back();
        }
        KernelProfile& kernel = kernels[found->second];
        Add(kernel, bounds[found->second], time);
        AddLine(kernel, record, time);
        kernel.roofline_cycles += RooflineCycles(profile.description, record, time.cost);
        kernel.energy_nj += npu::EnergyOf(profile.description, time.cost.events, 0).total_nj();
        profile.kernel_of.push_back(found->second);
    }
    for (size_t i = 0; i < kernels.size(); ++i) {
        const auto most = std::ranges::max_element(bounds[i]);
        kernels[i].bound = static_cast<npu::Bound>(most - bounds[i].begin());
        kernels[i].bound_time = *most;
    }
    std::vector<uint32_t> order(kernels.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, {}, [&](uint32_t i) {
        return std::tuple(~kernels[i].time, std::string_view(kernels[i].name), kernels[i].is_copy);
    });
    std::vector<uint32_t> place(kernels.size());
    for (uint32_t i = 0; i < order.size(); ++i) {
        place[order[i]] = i;
        profile.kernels.push_back(std::move(kernels[order[i]]));
    }
    for (uint32_t& kernel : profile.kernel_of) {
        kernel = place[kernel];
    }
}

}  // namespace

Peaks PeaksOf(const npu::Description& description) {
    const npu::Description& d = description;
    const auto cores = static_cast<double>(d.cores.count());
    Peaks peaks;
    for (uint32_t i = 0; i < npu::kMatrixTypes; ++i) {
        peaks.macs[i] = cores *
                        static_cast<double>(d.matrix.units * d.matrix.rows * d.matrix.columns) *
                        d.matrix.rate(static_cast<npu::MatrixType>(i));
    }
    const double interval = d.vector.multiply_add_interval > 0
                                ? std::min(d.vector.simple_interval, d.vector.multiply_add_interval)
                                : d.vector.simple_interval;
    peaks.vector = cores * static_cast<double>(d.vector.units * d.vector.bits) / 32 / interval;
    peaks.special = cores * static_cast<double>(d.special.lanes) / d.special.interval;
    peaks.dram_bytes = d.BytesPerCycle(d.dram.bandwidth_gbs);
    return peaks;
}

double RooflineCycles(const npu::Description& description,
                      const npu::Record& record,
                      const npu::Cost& cost) {
    const Peaks peaks = PeaksOf(description);
    double matrix = 0;
    for (uint32_t i = 0; i < npu::kMatrixTypes; ++i) {
        const auto macs = static_cast<double>(cost.events.multiply_accumulates[i]);
        matrix += macs > 0 ? macs / peaks.macs[i] : 0;
    }
    double vector = static_cast<double>(cost.events.vector_operations) / peaks.vector;
    if (const auto* dispatch = std::get_if<npu::DispatchRecord>(&record.work)) {
        vector *= std::max(dispatch->element_bits, 8U) / 32.0;
    }
    const double special = static_cast<double>(cost.events.special_operations) / peaks.special;
    const npu::Traffic& traffic = cost.traffic;
    const uint64_t extra = std::min(traffic.dram(), traffic.over_fetch + traffic.spill);
    const double dram = static_cast<double>(traffic.dram() - extra) / peaks.dram_bytes;
    const double host = static_cast<double>(cost.host_bytes) /
                        description.BytesPerCycle(description.host_link.bandwidth_gbs);
    return std::max({matrix, vector, special, dram, host});
}

Result<Profile> MakeProfile(npu::Description description, std::span<const npu::Record> records) {
    Profile profile = {.description = std::move(description), .records = records};
    FORNAX_ASSIGN_OR_RETURN(profile.result,
                            npu::Replay(profile.description, records, &profile.timeline));
    MakeKernels(profile);
    return profile;
}

std::vector<Step> StepsOf(std::vector<Interval> intervals) {
    std::vector<std::pair<Cycles, size_t>> begins, ends;
    for (size_t i = 0; i < intervals.size(); ++i) {
        if (intervals[i].began < intervals[i].ended) {
            begins.emplace_back(intervals[i].began, i);
            ends.emplace_back(intervals[i].ended, i);
        }
    }
    std::ranges::sort(begins);
    std::ranges::sort(ends);
    std::vector<Step> steps;
    double value = 0;
    size_t begin = 0;
    for (size_t end = 0; end < ends.size();) {
        const Cycles time = begin < begins.size() ? std::min(begins[begin].first, ends[end].first)
                                                  : ends[end].first;
        for (; end < ends.size() && ends[end].first == time; ++end) {
            value -= intervals[ends[end].second].value;
        }
        for (; begin < begins.size() && begins[begin].first == time; ++begin) {
            value += intervals[begins[begin].second].value;
        }
        // What rounding leaves is nothing where nothing goes on.
        value = begin == end ? 0 : value;
        if (steps.empty() || steps.back().value != value) {
            steps.push_back({time, value});
        }
    }
    return steps;
}

std::vector<uint32_t> LanesOf(std::span<const Interval> intervals) {
    using Lane = std::pair<Cycles, uint32_t>;  // when it is free
    std::priority_queue<Lane, std::vector<Lane>, std::greater<>> busy;
    std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free;
    uint32_t lanes = 0;
    std::vector<uint32_t> made;
    for (const Interval& interval : intervals) {
        while (!busy.empty() && busy.top().first <= interval.began) {
            free.push(busy.top().second);
            busy.pop();
        }
        uint32_t lane = lanes;
        if (free.empty()) {
            ++lanes;
        } else {
            lane = free.top();
            free.pop();
        }
        made.push_back(lane);
        busy.emplace(interval.ended, lane);
    }
    return made;
}

std::vector<Interval> RatesOf(const Profile& profile, npu::Unit unit) {
    std::vector<Interval> intervals;
    for (const npu::FlowTime& flow : profile.timeline.flows) {
        if (flow.unit == unit && flow.ended > flow.began) {
            intervals.push_back(
                {flow.began, flow.ended,
                 static_cast<double>(flow.bytes) / static_cast<double>(flow.ended - flow.began)});
        }
    }
    return intervals;
}

std::vector<Interval> ScratchpadOf(const Profile& profile) {
    std::vector<Interval> intervals;
    for (const npu::RecordTime& time : profile.result.records) {
        intervals.push_back(
            {time.began, time.finished, static_cast<double>(time.grant.bytes * time.cost.cores)});
    }
    return intervals;
}

std::vector<Interval> CoresOf(const Profile& profile) {
    std::vector<Interval> intervals;
    for (const npu::RecordTime& time : profile.result.records) {
        intervals.push_back({time.began, time.finished, static_cast<double>(time.cost.cores)});
    }
    return intervals;
}

}  // namespace fornax::tool
