// Tables of columns as CSV and Parquet, and the table of a sweep.
#pragma once

#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "npu/sweep/sweep.h"

namespace fornax::tool {

struct Column {
    std::string name;
    // Numbers that there are none of are NaN.
    std::variant<std::vector<int64_t>, std::vector<double>, std::vector<std::string>> values;
    size_t size() const;
};

// The columns are equally long. RFC 4180; numbers as short as they can be exact.
std::string CsvOf(std::span<const Column> columns);

// Apache Parquet: one group of rows, columns that are required, plain and not compressed. `notes`
// are the file's key-value metadata.
std::string ParquetOf(std::span<const Column> columns,
                      const std::map<std::string, std::string>& notes);

// A row a description: the values of the axes, times of all programs and of each, energy, the proxy
// of the area, whether no other row beats it, description and version of the model, why it failed.
std::vector<Column> SweepColumns(const npu::Space& space,
                                 std::span<const npu::SweepRow> rows,
                                 std::span<const std::string> programs);

// The Pareto front as text, the fastest first.
std::string ParetoText(const npu::Space& space, std::span<const npu::SweepRow> rows, size_t top);

// "modelled, uncalibrated (sweep of 6 descriptions of laptop-45, model 2)".
std::string SweepStamp(const npu::Space& space);

}  // namespace fornax::tool
