// `fornax sweep`: the same cost records on every description of a space.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "base/file.h"
#include "base/scratch_directory.h"
#include "npu/replay/record_file.h"
#include "tools/bench/process.h"
#include "tools/fornax/command.h"
#include "tools/fornax/manifest.h"
#include "tools/fornax/progress.h"
#include "tools/fornax/reference.h"
#include "tools/replay/sweep_page.h"
#include "tools/replay/sweep_rows.h"
#include "tools/replay/table.h"

namespace fornax::tool {
namespace {

constexpr const char* kExamples =
    "SPACE is a TOML file: a base, and lists where a description has values, as in\n"
    "  base = \"laptop-45\"\n"
    "  [cores]\n"
    "  clusters = [2, 4, 6, 8]\n"
    "  [dram]\n"
    "  bandwidth_gbs = [68, 136, 273]\n"
    "\n"
    "Examples:\n"
    "  fornax run model.onnx --records model.jsonl\n"
    "  fornax sweep space.toml model.jsonl -o table.parquet --page table.html";

constexpr double kMostClusterSeconds = 7 * 24 * 3600;

struct Options {
    std::string space;
    std::vector<std::string> records;
    std::string output;
    std::string page;
    std::string cluster;
    std::string python;
    std::string rows;
    uint32_t threads = std::max(1U, std::thread::hardware_concurrency());
    size_t top = 20;
    bool skip_contradictions = false;
};

// Column names of programs: the files' stems, with a number where they are equal.
std::vector<std::string> NamesOf(const std::vector<std::string>& paths) {
    std::vector<std::string> names;
    for (const std::string& path : paths) {
        const std::string stem = std::filesystem::path(path).stem().string();
        std::string name = stem;
        for (int i = 2; std::ranges::find(names, name) != names.end(); ++i) {
            name = fmt::format("{}_{}", stem, i);
        }
        names.push_back(name);
    }
    return names;
}

void WriteTable(const Options& options,
                const npu::Space& space,
                const std::vector<npu::SweepRow>& rows) {
    const std::vector<Column> columns = SweepColumns(space, rows, NamesOf(options.records));
    const bool is_parquet = options.output.ends_with(".parquet");
    ExitIfError(WriteOutputFile(
        options.output,
        is_parquet ? ParquetOf(columns, {{"stamp", SweepStamp(space)}}) : CsvOf(columns)));
    fmt::print("written    {}\n", options.output);
}

using Programs = std::vector<std::vector<npu::Record>>;

// --rows FIRST:LAST, for processes of a cluster: a part of the space, and nothing but its rows.
void PrintRows(const Options& options, const npu::Space& space, const Programs& programs) {
    npu::SweepOptions sweep = {.threads = options.threads,
                               .skip_contradictions = options.skip_contradictions};
    const char* end = options.rows.data() + options.rows.size();
    const auto [colon, first_code] = std::from_chars(options.rows.data(), end, sweep.first);
    if (first_code != std::errc() || colon == end || *colon != ':' ||
        std::from_chars(colon + 1, end, sweep.last).ptr != end) {
        ExitWithError({ErrorCode::kInvalidArgument,
                       fmt::format("--rows is {}; it must be FIRST:LAST.", options.rows)},
                      kExitUsage);
    }
    const std::vector<npu::SweepRow> rows = ValueOrExit(npu::RunSweep(space, programs, sweep));
    for (size_t i = 0; i < rows.size(); ++i) {
        fmt::print("{}", RowLine(sweep.first + i, rows[i]));
    }
}

// Shows how many rows a file of lines has until it is stopped.
void ShowRows(const std::stop_token& stop, const std::string& path, size_t total) {
    ProgressLine line;
    while (!stop.stop_requested()) {
        const Result<std::string> text = ReadTextFile(path, SIZE_MAX);
        const auto done = text.ok() ? std::ranges::count(*text, '\n') : 0;
        line.Show("replaying descriptions", static_cast<size_t>(done), total);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
}

// The last line, where Python says what went wrong.
std::string LastLine(std::string text) {
    while (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    return text.substr(text.rfind('\n') + 1);
}

Result<std::vector<npu::SweepRow>> ReplayedByCluster(const Options& options,
                                                     const npu::Space& space,
                                                     const Programs& programs) {
    if (!options.skip_contradictions) {
        FORNAX_RETURN_IF_ERROR(npu::CheckSpace(space));
    }
    FORNAX_ASSIGN_OR_RETURN(const std::string tree, SourceTree());
    FORNAX_ASSIGN_OR_RETURN(const std::string python, FindPython(options.python, "distributed"));
    FORNAX_ASSIGN_OR_RETURN(const std::filesystem::path command, ExecutablePath());
    FORNAX_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::Create("sweep"));
    FORNAX_RETURN_IF_ERROR(WriteOutputFile(scratch / "space.toml", npu::TextOf(space)));
    for (size_t i = 0; i < programs.size(); ++i) {
        FORNAX_RETURN_IF_ERROR(
            npu::WriteRecordFile(scratch / fmt::format("{}.jsonl", i), programs[i]));
    }
    std::vector<npu::SweepRow> rows(space.count());
    bench::ProcessOptions process = {
        .arguments = {python, "-m", "tools.replay.cluster", options.cluster, command,
                      scratch.path(), fmt::format("{}", rows.size())},
        .environment = {{"PYTHONPATH", tree}, {"PYTHONDONTWRITEBYTECODE", "1"}},
        .log = scratch / "log",
        .timeout_seconds = kMostClusterSeconds};
    {
        const std::jthread progress(
            [&](const std::stop_token& stop) { ShowRows(stop, scratch / "rows", rows.size()); });
        FORNAX_ASSIGN_OR_RETURN(const int code, bench::RunProcess(process));
        if (code != 0) {
            const Result<std::string> log = ReadTextFile(scratch / "log", size_t{64} << 20);
            return Error{ErrorCode::kInternal,
                         fmt::format("The cluster {} failed: {}", options.cluster,
                                     log.ok() ? LastLine(*log) : log.error().message)};
        }
    }
    FORNAX_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(scratch / "rows", SIZE_MAX));
    FORNAX_RETURN_IF_ERROR(ReadRowLines(text, programs.size(), rows));
    return rows;
}

Result<std::vector<npu::SweepRow>> Replayed(const Options& options,
                                            const npu::Space& space,
                                            const Programs& programs) {
    if (!options.cluster.empty()) {
        return ReplayedByCluster(options, space, programs);
    }
    ProgressLine line;
    return npu::RunSweep(space, programs,
                         {.threads = options.threads,
                          .skip_contradictions = options.skip_contradictions,
                          .progress = [&](uint64_t done, uint64_t total) {
                              line.Show("replaying descriptions", done, total);
                          }});
}

void Sweep(const Options& options) {
    const npu::Space space = ValueOrExit(npu::LoadSpace(options.space));
    Programs programs;
    for (const std::string& path : options.records) {
        programs.push_back(ValueOrExit(npu::ReadRecordFile(path)));
    }
    if (!options.rows.empty()) {
        PrintRows(options, space, programs);
        return;
    }
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<npu::SweepRow> rows = ValueOrExit(Replayed(options, space, programs));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const auto failed = static_cast<size_t>(
        std::ranges::count_if(rows, [](const auto& row) { return !row.failure.empty(); }));
    fmt::print("{}\n{} descriptions in {:.2f} s, {:.0f} a second with {}\n", SweepStamp(space),
               rows.size(), seconds.count(), static_cast<double>(rows.size()) / seconds.count(),
               options.cluster.empty() ? fmt::format("{} threads", options.threads)
                                       : "the cluster " + options.cluster);
    if (failed > 0) {
        const auto first =
            std::ranges::find_if(rows, [](const auto& row) { return !row.failure.empty(); });
        fmt::print("{} of them without a time; the first: {}\n", failed, first->failure);
    }
    fmt::print("\nwhat no other description beats in time, energy and area\n{}",
               ParetoText(space, rows, options.top));
    if (!options.output.empty()) {
        WriteTable(options, space, rows);
    }
    if (!options.page.empty()) {
        ExitIfError(WriteOutputFile(options.page, SweepPageOf(space, rows)));
        fmt::print("written    {}\n", options.page);
    }
    if (failed == rows.size()) {
        ExitWithError({ErrorCode::kInvalidArgument, "No description could be replayed."});
    }
}

}  // namespace

void AddSweepCommand(CLI::App& app) {
    CLI::App* sweep =
        app.add_subcommand("sweep", "Model the time of cost records on many described NPUs");
    sweep->footer(kExamples);
    auto options = std::make_shared<Options>();
    sweep->add_option("space", options->space, "A TOML file of descriptions")->required();
    sweep->add_option("records", options->records, "Files of cost records")->required();
    sweep
        ->add_option("-o,--output", options->output,
                     "A table with a row a description: FILE.parquet, else CSV")
        ->check([](const std::string& path) {
            return path.ends_with(".parquet") || path.ends_with(".csv")
                       ? std::string()
                       : fmt::format("{} must end in .csv or .parquet", path);
        });
    sweep->add_option("--page", options->page, "An HTML page that plots them");
    sweep->add_option("--threads", options->threads, "How many replay at a time")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    sweep->add_option("--cluster", options->cluster,
                      "The address of a Dask scheduler, whose workers replay");
    sweep->add_option("--python", options->python,
                      "The Python that has distributed (else the source tree's, else python3)");
    sweep->add_option("--rows", options->rows)->group("");
    sweep->add_option("--top", options->top, "How many of the best are printed")
        ->capture_default_str();
    sweep->add_flag("--skip-contradictions", options->skip_contradictions,
                    "Leave descriptions out whose values contradict each other");
    sweep->callback([options] { Sweep(*options); });
}

}  // namespace fornax::tool
