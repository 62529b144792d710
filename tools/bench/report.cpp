// Renders a report as text and as JSON.
#include "tools/bench/report.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/fornax/text_table.h"

namespace fornax::bench {
namespace {

using tool::TextTable;
using Align = TextTable::Align;

// Above this load for each processor a run says that the machine was busy.
constexpr double kBusyShare = 0.25;

// Three significant digits are what repetitions agree on.
std::string FormatNumber(double value) {
    if (value >= 100) {
        return fmt::format("{:.0f}", value);
    }
    if (value >= 10) {
        return fmt::format("{:.1f}", value);
    }
    return fmt::format("{:.{}f}", value, value >= 0.1 ? 2 : 3);
}

std::string FormatRatio(double ratio) {
    return ratio == 0 ? "-" : FormatNumber(ratio) + "x";
}

const char* LimitName(Limit limit) {
    switch (limit) {
        case Limit::kNone:
            return "";
        case Limit::kFmaAllThreads:
            return "fma";
        case Limit::kTriad:
            return "triad";
        case Limit::kTriadCached:
            return "cached triad";
        case Limit::kCopy:
            return "copy";
        case Limit::kRead:
            return "read";
    }
    return "";
}

bool HasFornax(const Report& report) {
    return !report.drivers.empty() && report.drivers.front().is_fornax;
}

std::string FormatLimitShare(const Report& report, const ReportRow& row) {
    const double limit = report.limits.Value(row.shape->limit);
    if (limit == 0 || !row.cells.front().ok()) {
        return "-";
    }
    return fmt::format("{:.0f} % {}", 100 * row.cells.front().Median() / limit,
                       LimitName(row.shape->limit));
}

std::string FormatDrivers(const Report& report) {
    TextTable table({"driver", "device", "version", "Vulkan"},
                    {Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft});
    for (const Driver& driver : report.drivers) {
        table.AddRow({driver.name, driver.device, driver.driver_info, driver.api_version});
    }
    return table.Render();
}

std::string FormatMeasurements(const Report& report) {
    const bool has_fornax = HasFornax(report);
    const size_t driver_count = report.drivers.size();
    std::vector<std::string> headers = {"benchmark", "unit"};
    for (const Driver& driver : report.drivers) {
        headers.push_back(driver.name);
    }
    if (has_fornax) {
        for (size_t other = 1; other < driver_count; ++other) {
            headers.push_back("vs " + report.drivers[other].name);
        }
        if (driver_count > 2) {
            headers.push_back("vs best other");
        }
        headers.push_back("of limit");
    }
    std::vector<Align> alignments(headers.size(), Align::kRight);
    alignments[0] = alignments[1] = Align::kLeft;
    if (has_fornax) {
        alignments.back() = Align::kLeft;
    }

    TextTable table(headers, alignments);
    for (const ReportRow& row : report.rows) {
        std::vector<std::string> cells = {row.shape->title(row.size), row.shape->unit};
        for (const Measurement& cell : row.cells) {
            cells.push_back(cell.ok() ? FormatNumber(cell.Median()) : "failed");
        }
        if (has_fornax) {
            for (size_t other = 1; other < driver_count; ++other) {
                cells.push_back(FormatRatio(RatioTo(report, row, other)));
            }
            if (driver_count > 2) {
                cells.push_back(FormatRatio(RatioToBestOther(report, row)));
            }
            cells.push_back(FormatLimitShare(report, row));
        }
        table.AddRow(std::move(cells));
    }
    return table.Render();
}

}  // namespace

double Measurement::Median() const {
    assert(!values.empty());
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const size_t middle = sorted.size() / 2;
    return sorted.size() % 2 != 0 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

bool Report::HasFailures() const {
    for (const ReportRow& row : rows) {
        if (std::any_of(row.cells.begin(), row.cells.end(),
                        [](const auto& c) { return !c.ok(); })) {
            return true;
        }
    }
    return false;
}

double RatioTo(const Report& report, const ReportRow& row, size_t other) {
    if (!HasFornax(report) || !row.cells.front().ok() || !row.cells[other].ok()) {
        return 0;
    }
    return row.shape->Ratio(row.cells.front().Median(), row.cells[other].Median());
}

double RatioToBestOther(const Report& report, const ReportRow& row) {
    double best = 0;
    for (size_t other = 1; other < report.drivers.size(); ++other) {
        const double ratio = RatioTo(report, row, other);
        if (ratio != 0 && (best == 0 || ratio < best)) {
            best = ratio;
        }
    }
    return best;
}

std::string FormatReport(const Report& report) {
    std::string text = fmt::format(
        "{}, {} {}{}; median of {} repetitions{}\n\n", report.processor, report.limits.threads,
        report.limits.threads == 1 ? "thread" : "threads",
        report.target == kNativeTarget ? "" : ", Fornax's kernels for " + report.target,
        report.repetitions, report.quick ? "; small sizes (--quick), not for comparison" : "");
    if (report.load_average > kBusyShare * report.limits.threads) {
        text += fmt::format(
            "The machine was busy when the run began (load average {:.1f}); figures are too low "
            "and ratios uncertain.\n\n",
            report.load_average);
    }
    text += FormatDrivers(report) + "\n";
    text += FormatMeasurements(report) + "\n";
    text += FormatLimits(report.limits);
    if (report.HasFailures()) {
        text += "\nFailures\n";
    }
    for (const ReportRow& row : report.rows) {
        for (size_t i = 0; i < row.cells.size(); ++i) {
            if (!row.cells[i].ok()) {
                text += fmt::format("  {} on {}: {}\n", row.shape->name, report.drivers[i].name,
                                    row.cells[i].error);
            }
        }
    }
    return text;
}

std::string FormatLimits(const HostLimits& limits) {
    TextTable table({"host limit", "unit", "measured"},
                    {Align::kLeft, Align::kLeft, Align::kRight});
    auto add = [&](std::string name, const char* unit, double value) {
        table.AddRow({std::move(name), unit, FormatNumber(value)});
    };
    add(fmt::format("f32 fma, one thread ({})", limits.vector_unit), "GFLOP/s",
        limits.fma_one_thread_gflops);
    add(fmt::format("f32 fma, {} threads", limits.threads), "GFLOP/s",
        limits.fma_all_threads_gflops);
    add("triad of arrays in memory", "GB/s", limits.triad_gbs);
    add("triad of arrays in caches", "GB/s", limits.triad_cached_gbs);
    add("copy in memory", "GB/s", limits.copy_gbs);
    add("read of memory", "GB/s", limits.read_gbs);
    return table.Render();
}

nlohmann::json LimitsToJson(const HostLimits& limits) {
    return {{"threads", limits.threads},
            {"vector_unit", limits.vector_unit},
            {"fma_one_thread_gflops", limits.fma_one_thread_gflops},
            {"fma_all_threads_gflops", limits.fma_all_threads_gflops},
            {"triad_gbs", limits.triad_gbs},
            {"triad_cached_gbs", limits.triad_cached_gbs},
            {"copy_gbs", limits.copy_gbs},
            {"read_gbs", limits.read_gbs}};
}

nlohmann::json ReportToJson(const Report& report) {
    nlohmann::json json = {
        {"processor", report.processor},       {"target", report.target},
        {"load_average", report.load_average}, {"quick", report.quick},
        {"repetitions", report.repetitions},   {"limits", LimitsToJson(report.limits)},
        {"drivers", nlohmann::json::array()},  {"benchmarks", nlohmann::json::array()},
    };
    for (const Driver& driver : report.drivers) {
        json["drivers"].push_back({{"name", driver.name},
                                   {"device", driver.device},
                                   {"driver_info", driver.driver_info},
                                   {"api_version", driver.api_version},
                                   {"manifest", driver.manifest.string()}});
    }
    for (const ReportRow& row : report.rows) {
        nlohmann::json entry = {{"name", row.shape->name}, {"title", row.shape->title(row.size)},
                                {"unit", row.shape->unit}, {"is_rate", row.shape->is_rate},
                                {"size", row.size},        {"results", nlohmann::json::object()}};
        for (size_t i = 0; i < row.cells.size(); ++i) {
            nlohmann::json& result = entry["results"][report.drivers[i].name];
            result["values"] = row.cells[i].values;
            if (row.cells[i].ok()) {
                result["median"] = row.cells[i].Median();
            } else {
                result["error"] = row.cells[i].error;
            }
            const double ratio = i == 0 ? 0 : RatioTo(report, row, i);
            if (ratio != 0) {
                result["fornax_ratio"] = ratio;
            }
        }
        if (const double ratio = RatioToBestOther(report, row); ratio != 0) {
            entry["fornax_ratio_to_best_other"] = ratio;
        }
        if (const double limit = report.limits.Value(row.shape->limit); limit != 0) {
            entry["limit"] = limit;
            entry["limit_name"] = LimitName(row.shape->limit);
        }
        json["benchmarks"].push_back(std::move(entry));
    }
    return json;
}

nlohmann::json ReportsToJson(const std::vector<Report>& reports) {
    if (reports.size() == 1) {
        return ReportToJson(reports.front());
    }
    nlohmann::json json = {{"runs", nlohmann::json::array()}};
    for (const Report& report : reports) {
        json["runs"].push_back(ReportToJson(report));
    }
    return json;
}

}  // namespace fornax::bench
