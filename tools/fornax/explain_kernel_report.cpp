#include "tools/fornax/explain_kernel_report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/fornax/text_table.h"

namespace fornax::tool {
namespace {

using Align = TextTable::Align;
using kernel::AccessCheckName;
using kernel::AccessForm;
using kernel::AccessFormName;
using kernel::CodePlace;
using kernel::KernelExplanation;

constexpr size_t kIndent = 2;

// "shader.comp:12 OpLoad", "OpLoad at word 300".
std::string PlaceName(const CodePlace& place) {
    if (!place.source.empty()) {
        return place.source + " " + place.instruction;
    }
    if (place.instruction.empty()) {
        return "-";
    }
    return fmt::format("{} at word {}", place.instruction, place.word);
}

std::string LoopName(uint32_t loop) {
    return loop == 0 ? "" : fmt::format("#{}", loop);
}

std::string Summary(const KernelExplanation& e) {
    TextTable table({"", ""}, {Align::kLeft, Align::kLeft});
    table.AddRow({"target", fmt::format("{}, {}-bit vectors", e.cpu, e.vector_bits)});
    table.AddRow({"workgroup", fmt::format("{} x {} x {}", e.workgroup_size[0], e.workgroup_size[1],
                                           e.workgroup_size[2])});
    std::string width =
        fmt::format("{} invocations a vector, {}", e.lanes,
                    e.workgroups > 1 ? fmt::format("{} workgroups", e.workgroups)
                                     : fmt::format("{} vectors a workgroup", e.vectors));
    if (e.tile_width != 0) {
        width += fmt::format(", in tiles {} wide", e.tile_width);
    }
    table.AddRow({"width", width});
    table.AddRow({"pressure", fmt::format("{} of {} vector registers at the most", e.live_values,
                                          e.vector_registers)});
    table.AddRow(
        {"memory", fmt::format("{} workgroup, {} scratch a worker", FormatBytes(e.shared_bytes),
                               FormatBytes(e.scratch_bytes))});
    table.AddRow(
        {"size", fmt::format("{} IR instructions as read, {} after the passes, {} of LLVM, "
                             "object file of {}",
                             e.instructions_read, e.instructions, e.llvm_instructions,
                             FormatBytes(e.code_bytes))});
    std::string times;
    for (const kernel::StageTime& time : e.times) {
        times +=
            fmt::format("{}{} {:.2f} ms", times.empty() ? "" : ", ", time.stage, time.milliseconds);
    }
    table.AddRow({"time", times});
    return table.Render(kIndent);
}

std::string Regions(const KernelExplanation& e) {
    if (e.regions.size() < 2) {
        return "\nbarriers: none, the kernel is one barrier region\n";
    }
    std::string text =
        fmt::format("\nbarriers cut the kernel into {} barrier regions\n", e.regions.size());
    TextTable table({"region", "instructions", "values of other regions", "lanes"},
                    {Align::kRight, Align::kRight, Align::kRight, Align::kRight});
    for (size_t i = 0; i < e.regions.size(); ++i) {
        table.AddRow({std::to_string(i), std::to_string(e.regions[i].instructions),
                      std::to_string(e.regions[i].imports), std::to_string(e.regions[i].lanes)});
    }
    text += table.Render(kIndent);
    if (e.kept.empty()) {
        return text;
    }
    text += "\nwhat lives across barriers\n";
    // A loop carries its values by the dozen: equal ones are counted.
    std::vector<std::vector<std::string>> rows;
    std::vector<size_t> counts;
    for (const kernel::KeptRecord& record : e.kept) {
        std::vector<std::string> row = {record.operation, record.type, record.storage,
                                        PlaceName(record.place)};
        const auto same = std::ranges::find(rows, row);
        if (same == rows.end()) {
            rows.push_back(std::move(row));
            counts.push_back(1);
        } else {
            ++counts[static_cast<size_t>(same - rows.begin())];
        }
    }
    TextTable kept({"values", "made by", "type", "kept", "where"},
                   {Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft});
    for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].insert(rows[i].begin(), std::to_string(counts[i]));
        kept.AddRow(rows[i]);
    }
    return text + kept.Render(kIndent);
}

std::string Constructs(const KernelExplanation& e) {
    if (e.constructs.empty()) {
        return "";
    }
    TextTable table({"", "kind", "run by", "lanes", "region", "in", "where"},
                    {Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight,
                     Align::kLeft, Align::kLeft});
    for (size_t i = 0; i < e.constructs.size(); ++i) {
        const kernel::ConstructRecord& record = e.constructs[i];
        table.AddRow(
            {fmt::format("#{}", i + 1), record.kind, record.workgroup ? "workgroup" : "vector",
             record.divergent ? "diverge: masks" : "together: a branch",
             std::to_string(record.region), LoopName(record.loop), PlaceName(record.place)});
    }
    return "\nloops and branches\n" + table.Render(kIndent);
}

std::string Accesses(const KernelExplanation& e) {
    if (e.accesses.empty()) {
        return "\nmemory accesses: none\n";
    }
    TextTable table(
        {"memory", "operation", "type", "form", "check", "mask", "region", "loop", "offset",
         "where", "plan"},
        {Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft,
         Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft});
    for (const kernel::AccessRecord& record : e.accesses) {
        std::string form = AccessFormName(record.form);
        if (record.form == AccessForm::kRuns) {
            form = fmt::format("{} {}", record.runs, record.runs == 1 ? "run + shuffle" : form);
        }
        table.AddRow(
            {record.memory, record.operation, record.type, form, AccessCheckName(record.check),
             record.masked ? "yes" : "", std::to_string(record.region), LoopName(record.loop),
             record.pattern, PlaceName(record.place),
             record.plan + (record.assumptions.empty() ? "" : "; lanes at " + record.assumptions)});
    }
    return "\nmemory accesses\n" + table.Render(kIndent);
}

// The matrix unit's commands, each row those of one basic block; multiply-accumulates by format.
std::string Matrix(const KernelExplanation& e) {
    if (e.matrix.empty()) {
        return "";
    }
    std::string text = fmt::format(
        "\nmatrix unit, in the host's {} registers: commands each time that one of {} vectors "
        "comes by\n",
        e.matrix_tiles ? "tile" : "vector", e.vectors);
    TextTable table({"multiply-add", "load operand", "load accumulator", "store accumulator",
                     "region", "loop", "where"},
                    {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
                     Align::kLeft, Align::kLeft});
    for (const kernel::MatrixRecord& record : e.matrix) {
        std::string mmas;
        for (uint32_t i = 0; i < hal::kMatrixFormats; ++i) {
            if (record.counts.mmas[i] != 0) {
                mmas += fmt::format("{}{} {}", mmas.empty() ? "" : ", ", record.counts.mmas[i],
                                    hal::kMatrixFormatNames[i]);
            }
        }
        table.AddRow({mmas, std::to_string(record.counts.operands_loaded),
                      std::to_string(record.counts.accumulators_loaded),
                      std::to_string(record.counts.accumulators_stored),
                      std::to_string(record.region), LoopName(record.loop),
                      PlaceName(record.place)});
    }
    return text + table.Render(kIndent);
}

nlohmann::json PlaceToJson(const CodePlace& place) {
    return {{"word", place.word}, {"instruction", place.instruction}, {"source", place.source}};
}

}  // namespace

std::string FormatExplanation(const KernelExplanation& e) {
    return fmt::format("kernel {}\n", e.name) + Summary(e) + Regions(e) + Constructs(e) +
           Matrix(e) + Accesses(e);
}

nlohmann::json ExplanationToJson(const KernelExplanation& e) {
    nlohmann::json json = {
        {"name", e.name},
        {"cpu", e.cpu},
        {"vector_bits", e.vector_bits},
        {"workgroup_size", e.workgroup_size},
        {"subgroup_size", e.subgroup_size},
        {"lanes", e.lanes},
        {"vectors", e.vectors},
        {"tile_width", e.tile_width},
        {"workgroups", e.workgroups},
        {"live_values", e.live_values},
        {"vector_registers", e.vector_registers},
        {"shared_bytes", e.shared_bytes},
        {"scratch_bytes", e.scratch_bytes},
        {"instructions_read", e.instructions_read},
        {"instructions", e.instructions},
        {"llvm_instructions", e.llvm_instructions},
        {"code_bytes", e.code_bytes},
        {"regions", nlohmann::json::array()},
        {"kept", nlohmann::json::array()},
        {"constructs", nlohmann::json::array()},
        {"accesses", nlohmann::json::array()},
        {"matrix_tiles", e.matrix_tiles},
        {"matrix", nlohmann::json::array()},
        {"times_ms", nlohmann::json::object()},
    };
    for (const auto& region : e.regions) {
        json["regions"].push_back({{"instructions", region.instructions},
                                   {"imports", region.imports},
                                   {"lanes", region.lanes}});
    }
    for (const auto& kept : e.kept) {
        json["kept"].push_back({{"operation", kept.operation},
                                {"type", kept.type},
                                {"storage", kept.storage},
                                {"place", PlaceToJson(kept.place)}});
    }
    for (const auto& construct : e.constructs) {
        json["constructs"].push_back({{"kind", construct.kind},
                                      {"workgroup", construct.workgroup},
                                      {"divergent", construct.divergent},
                                      {"region", construct.region},
                                      {"loop", construct.loop},
                                      {"depth", construct.depth},
                                      {"place", PlaceToJson(construct.place)}});
    }
    for (const auto& access : e.accesses) {
        json["accesses"].push_back({{"memory", access.memory},
                                    {"operation", access.operation},
                                    {"type", access.type},
                                    {"pattern", access.pattern},
                                    {"form", AccessFormName(access.form)},
                                    {"runs", access.runs},
                                    {"plan", access.plan},
                                    {"assumptions", access.assumptions},
                                    {"check", AccessCheckName(access.check)},
                                    {"masked", access.masked},
                                    {"region", access.region},
                                    {"loop", access.loop},
                                    {"depth", access.depth},
                                    {"place", PlaceToJson(access.place)}});
    }
    for (const auto& matrix : e.matrix) {
        nlohmann::json& record = json["matrix"].emplace_back();
        record = {{"operands_loaded", matrix.counts.operands_loaded},
                  {"accumulators_loaded", matrix.counts.accumulators_loaded},
                  {"accumulators_stored", matrix.counts.accumulators_stored},
                  {"region", matrix.region},
                  {"loop", matrix.loop},
                  {"depth", matrix.depth},
                  {"place", PlaceToJson(matrix.place)}};
        for (uint32_t i = 0; i < hal::kMatrixFormats; ++i) {
            record["mmas"][hal::kMatrixFormatNames[i]] = matrix.counts.mmas[i];
        }
    }
    for (const auto& time : e.times) {
        json["times_ms"][time.stage] = time.milliseconds;
    }
    return json;
}

}  // namespace fornax::tool
