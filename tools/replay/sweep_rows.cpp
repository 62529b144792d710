#include "tools/replay/sweep_rows.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace fornax::tool {
namespace {

using nlohmann::json;

constexpr std::pair<const char*, double npu::SweepRow::*> kNumbers[] = {
    {"time_ns", &npu::SweepRow::time_ns},
    {"energy_nj", &npu::SweepRow::energy_nj},
    {"area_mm2", &npu::SweepRow::area_mm2},
    {"matrix_busy", &npu::SweepRow::matrix_busy},
    {"dram_busy", &npu::SweepRow::dram_busy}};
constexpr std::pair<const char*, uint64_t npu::SweepRow::*> kCounts[] = {
    {"dram_bytes", &npu::SweepRow::dram_bytes},
    {"spill_bytes", &npu::SweepRow::spill_bytes}};

bool ReadNumbers(const json& line, size_t programs, npu::SweepRow& row) {
    for (const auto& [key, member] : kNumbers) {
        if (!line.contains(key) || !line[key].is_number()) {
            return false;
        }
        row.*member = line[key].get<double>();
    }
    for (const auto& [key, member] : kCounts) {
        if (!line.contains(key) || !line[key].is_number_unsigned()) {
            return false;
        }
        row.*member = line[key].get<uint64_t>();
    }
    const json of_programs = line.value("program_ns", json());
    if (!of_programs.is_array() || of_programs.size() != (row.failure.empty() ? programs : 0)) {
        return false;
    }
    for (const json& ns : of_programs) {
        if (!ns.is_number()) {
            return false;
        }
        row.program_ns.push_back(ns.get<double>());
    }
    return true;
}

bool ReadRow(const json& line, size_t programs, npu::SweepRow& row) {
    const json failure = line.value("failure", json()), hash = line.value("description", json());
    if (!failure.is_string() || !hash.is_string()) {
        return false;
    }
    row.failure = failure.get<std::string>();
    const std::optional<Hash128> description = Hash128::FromHex(hash.get<std::string>());
    row.description = description.value_or(Hash128());
    return description && ReadNumbers(line, programs, row);
}

}  // namespace

std::string RowLine(uint64_t index, const npu::SweepRow& row) {
    json line = {{"index", index},
                 {"failure", row.failure},
                 {"description", row.description.ToHex()},
                 {"program_ns", row.program_ns}};
    for (const auto& [key, member] : kNumbers) {
        line[key] = row.*member;
    }
    for (const auto& [key, member] : kCounts) {
        line[key] = row.*member;
    }
    return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Status ReadRowLines(std::string_view text, size_t programs, std::vector<npu::SweepRow>& rows) {
    const auto bad = [](std::string_view what) {
        return Error{ErrorCode::kDataLoss, fmt::format("A row of the cluster {}.", what)};
    };
    std::vector<bool> is_there(rows.size());
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        const json line = json::parse(text.substr(0, end), nullptr, /*allow_exceptions=*/false);
        text.remove_prefix(std::min(end + 1, text.size()));
        const json index = line.is_object() ? line.value("index", json()) : json();
        if (!index.is_number_unsigned() || index.get<uint64_t>() >= rows.size()) {
            return bad("is no row of this sweep");
        }
        const auto i = index.get<uint64_t>();
        if (is_there[i]) {
            return bad(fmt::format("is there twice, {}", i));
        }
        is_there[i] = true;
        rows[i] = npu::SweepRow();
        if (!ReadRow(line, programs, rows[i])) {
            return bad(fmt::format("lacks a value, {}", i));
        }
    }
    if (const auto missing = std::ranges::find(is_there, false); missing != is_there.end()) {
        return bad(fmt::format("is missing, {}", missing - is_there.begin()));
    }
    return OkStatus();
}

}  // namespace fornax::tool
