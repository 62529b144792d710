// Profiles as tables and as JSON.
#include <algorithm>

#include <fmt/format.h>

#include "base/printable.h"
#include "tools/fornax/text_table.h"
#include "tools/replay/profile.h"

namespace fornax::tool {
namespace {

using Align = TextTable::Align;

std::string KernelsTable(const Profile& profile, size_t top) {
    npu::Cycles all = 0;  // of all records, which may overlap
    for (const KernelProfile& kernel : profile.kernels) {
        all += kernel.time;
    }
    TextTable table(
        {"us", "%", "count", "bound by", "% launch", "roofline us", "times it", "% MMA", "KiB DRAM",
         "uJ", "kernel", "most of that on line"},
        {Align::kRight, Align::kRight, Align::kRight, Align::kLeft, Align::kRight, Align::kRight,
         Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kLeft, Align::kLeft});
    const npu::Description& description = profile.description;
    const uint64_t units =
        description.cores.count() * std::max<uint64_t>(1, description.matrix.units);
    for (size_t i = 0; i < std::min(top, profile.kernels.size()); ++i) {
        const KernelProfile& kernel = profile.kernels[i];
        const double roofline_us = description.Nanoseconds(kernel.roofline_cycles) / 1e3;
        table.AddRow(
            {fmt::format("{:.1f}", profile.Nanoseconds(kernel.time) / 1e3),
             Percent(kernel.time, all), fmt::format("{}", kernel.count),
             std::string(npu::kBoundNames[static_cast<size_t>(kernel.bound)]),
             Percent(kernel.launch, kernel.time), fmt::format("{:.2f}", roofline_us),
             kernel.roofline_cycles > 0
                 ? fmt::format("{:.1f}", static_cast<double>(kernel.time) / kernel.roofline_cycles)
                 : "",
             kernel.matrix_busy == 0 ? "" : Percent(kernel.matrix_busy, kernel.time * units),
             fmt::format("{:.1f}", static_cast<double>(kernel.traffic.dram()) / 1024),
             fmt::format("{:.2f}", kernel.energy_nj / 1e3),
             Printable(kernel.name) + (kernel.is_copy ? " (copy)" : ""),
             kernel.line.empty()
                 ? ""
                 : fmt::format("{} ({} %)", Printable(kernel.line), kernel.line_percent)});
    }
    std::string text = table.Render(2);
    if (profile.kernels.size() > top) {
        text += fmt::format("  and {} kernels more\n", profile.kernels.size() - top);
    }
    return text;
}

std::string ProgramsTable(std::span<const ProgramTime> programs) {
    TextTable table({"program", "records", "us alone", "us beside the others", "times as long"},
                    {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
    for (const ProgramTime& program : programs) {
        table.AddRow({Printable(program.name), fmt::format("{}", program.records),
                      fmt::format("{:.1f}", program.alone_ns / 1e3),
                      fmt::format("{:.1f}", program.together_ns / 1e3),
                      program.alone_ns > 0
                          ? fmt::format("{:.2f}", program.together_ns / program.alone_ns)
                          : ""});
    }
    return table.Render(2);
}

nlohmann::json KernelToJson(const Profile& profile, const KernelProfile& kernel) {
    return {{"name", kernel.name},
            {"is_copy", kernel.is_copy},
            {"count", kernel.count},
            {"time_ns", profile.Nanoseconds(kernel.time)},
            {"run_ns", profile.Nanoseconds(kernel.run)},
            {"launch_ns", profile.Nanoseconds(kernel.launch)},
            {"waited_for_cores_ns", profile.Nanoseconds(kernel.waited)},
            {"bound", npu::kBoundNames[static_cast<size_t>(kernel.bound)]},
            {"bound_ns", profile.Nanoseconds(kernel.bound_time)},
            {"line", kernel.line},
            {"line_percent", kernel.line_percent},
            {"roofline_ns", profile.description.Nanoseconds(kernel.roofline_cycles)},
            {"operations", kernel.operations()},
            {"multiply_accumulates", kernel.multiply_accumulates},
            {"vector_operations", kernel.vector_operations},
            {"special_operations", kernel.special_operations},
            {"dram_bytes", kernel.traffic.dram()},
            {"over_fetch_bytes", kernel.traffic.over_fetch},
            {"spill_bytes", kernel.traffic.spill},
            {"network_bytes", kernel.traffic.network},
            {"host_link_bytes", kernel.host_bytes},
            {"cores", kernel.most_cores},
            {"energy_nj", kernel.energy_nj}};
}

}  // namespace

std::string Percent(npu::Cycles part, npu::Cycles whole) {
    return whole == 0 ? ""
                      : fmt::format("{:.1f}",
                                    100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string UnitsTable(const npu::ReplayResult& result) {
    TextTable table({"unit", "instances", "% busy", "% stall", "% idle"},
                    {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
    for (uint32_t i = 0; i < npu::kUnits; ++i) {
        const npu::UnitTime& unit = result.units[i];
        const npu::Cycles all = unit.instances * result.total;
        table.AddRow({std::string(npu::kUnitNames[i]), fmt::format("{}", unit.instances),
                      Percent(unit.busy, all), Percent(unit.stall, all), Percent(unit.idle, all)});
    }
    return table.Render(2);
}

std::string ProfileText(const Profile& profile, size_t top) {
    const npu::ReplayResult& result = profile.result;
    const double ns = profile.Nanoseconds(result.total);
    std::string text = fmt::format("{}\n", npu::StampOf(profile.description));
    text +=
        fmt::format("{:.1f} us in {} dispatches and copies of {} kernels; {:.1f} uJ, {:.2f} W\n",
                    ns / 1e3, result.records.size(), profile.kernels.size(),
                    result.energy.total_nj() / 1e3, ns > 0 ? result.energy.total_nj() / ns : 0);
    text += fmt::format(
        "DRAM {:.1f} KiB read, {:.1f} KiB written; {:.1f} KiB over-fetch, {:.1f} KiB spilt\n\n",
        static_cast<double>(result.traffic.dram_read) / 1024,
        static_cast<double>(result.traffic.dram_written) / 1024,
        static_cast<double>(result.traffic.over_fetch) / 1024,
        static_cast<double>(result.traffic.spill) / 1024);
    if (!profile.programs.empty()) {
        text += ProgramsTable(profile.programs) + "\n";
    }
    text += KernelsTable(profile, top) + "\n" + UnitsTable(result);
    return text;
}

nlohmann::json ProfileToJson(const Profile& profile) {
    const npu::ReplayResult& result = profile.result;
    const npu::Energy& energy = result.energy;
    nlohmann::json made = {{"stamp", npu::StampOf(profile.description)},
                           {"description", profile.description.name},
                           {"description_hash", profile.description.Hash().ToHex()},
                           {"model_version", npu::kModelVersion},
                           {"records", result.records.size()},
                           {"total_cycles", result.total},
                           {"total_ns", profile.Nanoseconds(result.total)},
                           {"dram_read_bytes", result.traffic.dram_read},
                           {"dram_written_bytes", result.traffic.dram_written},
                           {"network_bytes", result.traffic.network},
                           {"host_link_bytes", result.host_bytes},
                           {"over_fetch_bytes", result.traffic.over_fetch},
                           {"spill_bytes", result.traffic.spill},
                           {"scratchpad_high_water_bytes", result.scratchpad.high_water_bytes},
                           {"energy_nj",
                            {{"matrix", energy.matrix_nj},
                             {"vector", energy.vector_nj},
                             {"special", energy.special_nj},
                             {"scratchpad", energy.scratchpad_nj},
                             {"network", energy.network_nj},
                             {"DRAM", energy.dram_nj},
                             {"host link", energy.host_link_nj},
                             {"static", energy.static_nj},
                             {"total", energy.total_nj()}}}};
    for (uint32_t i = 0; i < npu::kUnits; ++i) {
        const npu::UnitTime& unit = result.units[i];
        made["units"][std::string(npu::kUnitNames[i])] = {{"instances", unit.instances},
                                                          {"busy", unit.busy},
                                                          {"stall", unit.stall},
                                                          {"idle", unit.idle}};
    }
    made["programs"] = nlohmann::json::array();
    for (const ProgramTime& program : profile.programs) {
        made["programs"].push_back({{"name", program.name},
                                    {"records", program.records},
                                    {"alone_ns", program.alone_ns},
                                    {"together_ns", program.together_ns}});
    }
    made["kernels"] = nlohmann::json::array();
    for (const KernelProfile& kernel : profile.kernels) {
        made["kernels"].push_back(KernelToJson(profile, kernel));
    }
    return made;
}

}  // namespace fornax::tool
