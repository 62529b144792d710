#include "tools/replay/page.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/printable.h"
#include "npu/description/fields.h"
#include "tools/replay/html.h"
#include "tools/replay/page_files.h"

namespace fornax::tool {
namespace {

using nlohmann::json;
using npu::Cycles;

// More intervals than this are no picture; the trace has them all.
constexpr size_t kMostIntervals = 20'000;
// A curve has no more points than this: averages over equal times.
constexpr size_t kMostPoints = 2'000;

json CurveOf(const Profile& profile, std::vector<Interval> intervals, double factor) {
    const std::vector<Step> steps = StepsOf(std::move(intervals));
    json points = json::array();
    const auto add = [&](double ns, double value) { points.push_back({ns, value}); };
    add(0, 0);
    if (steps.size() <= kMostPoints) {
        for (const Step& step : steps) {
            add(profile.Nanoseconds(step.time), step.value * factor);
        }
        add(profile.Nanoseconds(profile.result.total), steps.empty() ? 0 : steps.back().value);
        return points;
    }
    const double width =
        static_cast<double>(profile.result.total) / static_cast<double>(kMostPoints);
    std::vector<double> sums(kMostPoints);
    for (size_t i = 0; i + 1 < steps.size(); ++i) {
        auto begin = static_cast<double>(steps[i].time);
        const auto end = static_cast<double>(steps[i + 1].time);
        while (begin < end) {
            const size_t bin = std::min(kMostPoints - 1, static_cast<size_t>(begin / width));
            const double bin_end =
                bin + 1 == kMostPoints ? end : std::min(end, static_cast<double>(bin + 1) * width);
            // Where rounding makes no progress, the rest belongs to the bin.
            const double until = bin_end > begin ? bin_end : end;
            sums[bin] += steps[i].value * (until - begin);
            begin = until;
        }
    }
    for (size_t bin = 0; bin < kMostPoints; ++bin) {
        add(profile.description.Nanoseconds(static_cast<double>(bin) * width),
            sums[bin] / width * factor);
    }
    return points;
}

// Rows of the timeline, and bars in them: [row, begin, end, kernel].
class TimelineData {
  public:
    explicit TimelineData(const Profile& profile) : profile_(profile) {}

    json Make() {
        const npu::Timeline& timeline = profile_.timeline;
        std::vector<Bar> jobs, kernels, computations, dram, host;
        for (const npu::ProcessorJobTime& job : timeline.jobs) {
            jobs.push_back({{job.began, job.ended}, job.record});
        }
        for (uint32_t i = 0; i < profile_.result.records.size(); ++i) {
            const npu::RecordTime& time = profile_.result.records[i];
            kernels.push_back({{time.began, time.finished}, i});
        }
        for (const npu::ComputeTime& compute : timeline.computations) {
            computations.push_back({{compute.began, compute.ended}, compute.record});
        }
        for (const npu::FlowTime& flow : timeline.flows) {
            if (flow.unit == npu::Unit::kDram) {
                dram.push_back({{flow.began, flow.ended}, flow.record});
            } else if (flow.unit == npu::Unit::kHostLink) {
                host.push_back({{flow.began, flow.ended}, flow.record});
            }
        }
        AddRows("command processor", std::move(jobs));
        AddRows("kernels and copies", std::move(kernels));
        AddRows("computation", std::move(computations));
        AddRows("DRAM", std::move(dram));
        AddRows("host link", std::move(host));
        return {{"rows", rows_}, {"bars", bars_}, {"left_out", left_out_}};
    }

  private:
    struct Bar {
        Interval interval;
        uint32_t record = 0;
    };

    void AddRows(const char* name, std::vector<Bar> bars) {
        std::ranges::sort(bars, {}, [](const Bar& bar) {
            return std::tuple(bar.interval.began, bar.record, bar.interval.ended);
        });
        std::vector<Interval> intervals;
        for (const Bar& bar : bars) {
            intervals.push_back(bar.interval);
        }
        const std::vector<uint32_t> lanes = LanesOf(intervals);
        const size_t first = rows_.size();
        for (size_t i = 0; i < bars.size(); ++i) {
            if (bars_.size() >= kMostIntervals) {
                left_out_ += bars.size() - i;
                return;
            }
            while (rows_.size() <= first + lanes[i]) {
                rows_.push_back(lanes[i] == 0 ? name : fmt::format("{} ({})", name, lanes[i] + 1));
            }
            bars_.push_back({first + lanes[i], profile_.Nanoseconds(bars[i].interval.began),
                             profile_.Nanoseconds(bars[i].interval.ended),
                             profile_.kernel_of[bars[i].record]});
        }
    }

    const Profile& profile_;
    json rows_ = json::array(), bars_ = json::array();
    size_t left_out_ = 0;
};

// Operations and bytes of a second.
json MachineData(const npu::Description& description) {
    const Peaks peaks = PeaksOf(description);
    const double ghz = description.cores.clock_ghz;
    json machine = {{"name", description.name},
                    {"hash", description.Hash().ToHex()},
                    {"model_version", npu::kModelVersion},
                    {"dram_gbs", description.dram.bandwidth_gbs},
                    {"scratchpad_bytes", description.scratchpad.bytes * description.cores.count()},
                    {"cores", description.cores.count()},
                    {"roofs", json::array()},
                    {"keys", json::array()}};
    for (uint32_t i = 0; i < npu::kMatrixTypes; ++i) {
        if (peaks.macs[i] > 0) {
            machine["roofs"].push_back(
                {{"name", fmt::format("matrix, {}", npu::kMatrixTypeNames[i])},
                 {"gops", 2 * peaks.macs[i] * ghz}});
        }
    }
    machine["roofs"].push_back({{"name", "vector, 32 bit"}, {"gops", peaks.vector * ghz}});
    for (const npu::Field& field : npu::Fields()) {
        machine["keys"].push_back({fmt::format("{}.{}", field.table, field.key),
                                   npu::TextOf(field, field.get(description)), field.unit});
    }
    return machine;
}

json ChangesData(std::span<const WhatIf> changes) {
    json made = {{"names", json::array()}, {"replays", json::array()}};
    for (const Change& change : Changes()) {
        made["names"].push_back({{"key", change.key}, {"meaning", change.meaning}});
    }
    for (const WhatIf& replay : changes) {
        made["replays"].push_back({{"failure", Printable(replay.failure)},
                                   {"hash", replay.description.ToHex()},
                                   {"time_ns", replay.time_ns},
                                   {"energy_nj", replay.energy_nj},
                                   {"area_mm2", replay.area_mm2}});
    }
    return made;
}

}  // namespace

json PageData(const Profile& profile, std::span<const WhatIf> changes) {
    json data = {{"profile", ProfileToJson(profile)},
                 {"machine", MachineData(profile.description)},
                 {"timeline", TimelineData(profile).Make()},
                 {"what_if", ChangesData(changes)}};
    const double ghz = profile.description.cores.clock_ghz;
    data["curves"] = {{"dram_gbs", CurveOf(profile, RatesOf(profile, npu::Unit::kDram), ghz)},
                      {"network_gbs", CurveOf(profile, RatesOf(profile, npu::Unit::kNetwork), ghz)},
                      {"scratchpad_bytes", CurveOf(profile, ScratchpadOf(profile), 1)},
                      {"cores", CurveOf(profile, CoresOf(profile), 1)}};
    return data;
}

std::string PageOf(const Profile& profile, std::span<const WhatIf> changes) {
    return HtmlOf({.title = "Profile on " + profile.description.name,
                   .stamp = npu::StampOf(profile.description),
                   .body = PageBody(),
                   .script = PageScript()},
                  PageData(profile, changes));
}

}  // namespace fornax::tool
