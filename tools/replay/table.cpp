#include "tools/replay/table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/fornax/text_table.h"

namespace fornax::tool {
namespace {

using npu::SweepRow;

std::string CsvText(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) {
        return text;
    }
    std::string quoted = "\"";
    for (const char c : text) {
        quoted += c == '"' ? "\"\"" : std::string(1, c);
    }
    return quoted + "\"";
}

std::string CsvCell(const Column& column, size_t row) {
    if (const auto* texts = std::get_if<std::vector<std::string>>(&column.values)) {
        return CsvText((*texts)[row]);
    }
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&column.values)) {
        return fmt::format("{}", (*integers)[row]);
    }
    const double value = std::get<std::vector<double>>(column.values)[row];
    return std::isnan(value) ? "" : fmt::format("{}", value);
}

template <typename T, typename Value>
Column ColumnOf(const std::string& name, std::span<const SweepRow> rows, const Value& value) {
    std::vector<T> values;
    values.reserve(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
        values.push_back(value(i));
    }
    return {.name = name, .values = std::move(values)};
}

Column AxisColumn(const npu::Space& space, std::span<const SweepRow> rows, size_t axis) {
    const npu::SpaceAxis& of = space.axes[axis];
    switch (of.field->kind) {
        case npu::FieldKind::kWord:
            return ColumnOf<std::string>(of.name(), rows, [&](size_t i) {
                return npu::TextOf(*of.field, space.ValueOf(axis, i));
            });
        case npu::FieldKind::kInteger:
            return ColumnOf<int64_t>(of.name(), rows, [&](size_t i) {
                return static_cast<int64_t>(space.ValueOf(axis, i));
            });
        case npu::FieldKind::kNumber:
            break;
    }
    return ColumnOf<double>(of.name(), rows, [&](size_t i) { return space.ValueOf(axis, i); });
}

}  // namespace

size_t Column::size() const {
    return std::visit([](const auto& of) { return of.size(); }, values);
}

std::string CsvOf(std::span<const Column> columns) {
    std::string text;
    for (size_t i = 0; i < columns.size(); ++i) {
        text += (i == 0 ? "" : ",") + CsvText(columns[i].name);
    }
    text += "\r\n";
    for (size_t row = 0; !columns.empty() && row < columns.front().size(); ++row) {
        for (size_t i = 0; i < columns.size(); ++i) {
            text += (i == 0 ? "" : ",") + CsvCell(columns[i], row);
        }
        text += "\r\n";
    }
    return text;
}

std::vector<Column> SweepColumns(const npu::Space& space,
                                 std::span<const SweepRow> rows,
                                 std::span<const std::string> programs) {
    std::vector<Column> columns;
    for (size_t i = 0; i < space.axes.size(); ++i) {
        columns.push_back(AxisColumn(space, rows, i));
    }
    const auto add = [&](const std::string& name, const auto& value) {
        columns.push_back(ColumnOf<double>(name, rows, [&](size_t i) {
            return rows[i].failure.empty() ? static_cast<double>(value(rows[i])) : NAN;
        }));
    };
    add("modelled_time_ns", [](const SweepRow& row) { return row.time_ns; });
    for (size_t p = 0; p < programs.size() && programs.size() > 1; ++p) {
        add(fmt::format("modelled_time_ns:{}", programs[p]),
            [p](const SweepRow& row) { return row.program_ns[p]; });
    }
    add("modelled_energy_nj", [](const SweepRow& row) { return row.energy_nj; });
    add("area_proxy_mm2", [](const SweepRow& row) { return row.area_mm2; });
    add("matrix_busy", [](const SweepRow& row) { return row.matrix_busy; });
    add("dram_busy", [](const SweepRow& row) { return row.dram_busy; });
    add("dram_bytes", [](const SweepRow& row) { return row.dram_bytes; });
    add("spill_bytes", [](const SweepRow& row) { return row.spill_bytes; });
    std::vector<bool> is_best(rows.size());
    for (const uint64_t i : npu::ParetoFront(rows)) {
        is_best[i] = true;
    }
    columns.push_back(
        ColumnOf<int64_t>("pareto", rows, [&](size_t i) { return is_best[i] ? 1 : 0; }));
    columns.push_back(ColumnOf<std::string>("description_hash", rows, [&](size_t i) {
        return rows[i].failure.empty() ? rows[i].description.ToHex() : std::string();
    }));
    columns.push_back(ColumnOf<int64_t>("model_version", rows,
                                        [](size_t) { return int64_t{npu::kModelVersion}; }));
    columns.push_back(
        ColumnOf<std::string>("failure", rows, [&](size_t i) { return rows[i].failure; }));
    return columns;
}

std::string ParetoText(const npu::Space& space, std::span<const SweepRow> rows, size_t top) {
    std::vector<std::string> headers;
    for (const npu::SpaceAxis& axis : space.axes) {
        headers.push_back(axis.name());
    }
    for (const char* name : {"us", "uJ", "mm2 (proxy)", "% MMA", "% DRAM"}) {
        headers.emplace_back(name);
    }
    const size_t count = headers.size();
    TextTable table(std::move(headers),
                    std::vector<TextTable::Align>(count, TextTable::Align::kRight));
    const std::vector<uint64_t> front = npu::ParetoFront(rows);
    for (size_t i = 0; i < std::min(top, front.size()); ++i) {
        const SweepRow& row = rows[front[i]];
        std::vector<std::string> cells;
        for (size_t axis = 0; axis < space.axes.size(); ++axis) {
            cells.push_back(npu::TextOf(*space.axes[axis].field, space.ValueOf(axis, front[i])));
        }
        cells.push_back(fmt::format("{:.1f}", row.time_ns / 1e3));
        cells.push_back(fmt::format("{:.1f}", row.energy_nj / 1e3));
        cells.push_back(fmt::format("{:.1f}", row.area_mm2));
        cells.push_back(fmt::format("{:.1f}", 100 * row.matrix_busy));
        cells.push_back(fmt::format("{:.1f}", 100 * row.dram_busy));
        table.AddRow(std::move(cells));
    }
    std::string text = table.Render(2);
    if (front.size() > top) {
        text += fmt::format("  and {} more\n", front.size() - top);
    }
    return text;
}

std::string SweepStamp(const npu::Space& space) {
    return fmt::format("modelled, uncalibrated (sweep of {} descriptions of {}, model {})",
                       space.count(), space.base.name, npu::kModelVersion);
}

}  // namespace fornax::tool
