// The outcome of a run of `fornax bench`, and its two forms: a table to read, JSON to keep.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/bench/drivers.h"
#include "tools/bench/host_limits.h"
#include "tools/bench/shapes.h"

namespace fornax::bench {

// The repetitions of one shape on one driver. With an error, there is no value to show.
struct Measurement {
    std::vector<double> values;  // in the shape's unit
    std::string error;

    bool ok() const { return error.empty() && !values.empty(); }
    double Median() const;  // needs a value
};

struct ReportRow {
    const Shape* shape;
    uint32_t size;
    std::vector<Measurement> cells;  // one for each of the report's drivers
};

// What kernels are compiled for when nothing else is asked for.
inline constexpr char kNativeTarget[] = "native";

struct Report {
    std::string processor;
    std::string target = kNativeTarget;  // of Fornax's kernels
    double load_average = 0;             // of the minute before the run
    HostLimits limits;
    bool quick = false;
    int repetitions = 1;
    std::vector<Driver> drivers;  // Fornax, if present, is the first
    std::vector<ReportRow> rows;

    bool HasFailures() const;
};

// How many times better than driver `other` Fornax is in `row`; 0 if either has no value.
double RatioTo(const Report& report, const ReportRow& row, size_t other);

// The smallest of RatioTo over all other drivers with a value; 0 if there is none.
double RatioToBestOther(const Report& report, const ReportRow& row);

// A table with a column a driver, ratios, the share of the host's limit, the limits, and failures.
std::string FormatReport(const Report& report);

// The limits alone, as a table and as JSON.
std::string FormatLimits(const HostLimits& limits);
nlohmann::json LimitsToJson(const HostLimits& limits);

nlohmann::json ReportToJson(const Report& report);
// A single report as it is, several as the list "runs".
nlohmann::json ReportsToJson(const std::vector<Report>& reports);

}  // namespace fornax::bench
