// Runs every shape on every driver, each measurement in a process of its own.
//
// For each shape the repetitions go round the drivers, so that a machine that slows down or speeds
// up does so for all of them.
#include "tools/bench/runner.h"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/scratch_directory.h"
#include "compiler/kernel/codegen/target.h"
#include "tools/bench/affinity.h"
#include "tools/bench/process.h"

namespace fornax::bench {
namespace fs = std::filesystem;
namespace {

constexpr double kChildTimeoutSeconds = 120;

class Runner {
  public:
    Runner(const BenchOptions& options, const ScratchDirectory& scratch)
        : options_(options), scratch_(scratch.path()) {}

    // What later measurements run with.
    void Configure(const std::string& target, int threads) {
        target_ = target;
        threads_ = threads;
    }
    Result<std::vector<Driver>> FindDrivers();
    Result<std::vector<const Shape*>> FindShapes() const;
    ReportRow MeasureRow(const Shape& shape, const std::vector<Driver>& drivers);

  private:
    // Runs a child and returns the JSON that it wrote.
    Result<nlohmann::json> RunChild(const fs::path& manifest,
                                    const std::vector<std::string>& more,
                                    const fs::path& cache,
                                    bool mesa_cache);
    Result<Driver> Probe(const fs::path& manifest);
    Result<double> MeasureOnce(const Shape& shape,
                               const Driver& driver,
                               bool verify,
                               const fs::path& cache);
    void Announce(const std::string& step) const {
        if (options_.progress) {
            options_.progress(step);
        }
    }
    fs::path NewDirectory() {
        fs::path directory = scratch_ / fmt::format("cache-{}", directory_count_++);
        fs::create_directory(directory);
        return directory;
    }

    const BenchOptions& options_;
    fs::path scratch_;
    int directory_count_ = 0;
    std::string target_ = kNativeTarget;
    int threads_ = 0;
};

std::string LastLine(const fs::path& file) {
    std::ifstream stream(file);
    std::string last;
    for (std::string line; std::getline(stream, line);) {
        if (!line.empty()) {
            last = line;
        }
    }
    return last;
}

Result<nlohmann::json> Runner::RunChild(const fs::path& manifest,
                                        const std::vector<std::string>& more,
                                        const fs::path& cache,
                                        bool mesa_cache) {
    const fs::path output = scratch_ / "output.json";
    const fs::path log = scratch_ / "log.txt";
    fs::remove(output);

    ProcessOptions process;
    process.arguments = {options_.program, "bench-child", "--output", output};
    process.arguments.insert(process.arguments.end(), more.begin(), more.end());
    process.environment = {
        {"VK_DRIVER_FILES", manifest},
        {"VK_ICD_FILENAMES", manifest},
        {"VK_LOADER_DRIVERS_SELECT", ""},
        {"VK_LOADER_DRIVERS_DISABLE", ""},
        // Mesa's implicit layer reorders devices, which only costs time with a single one.
        {"NODEVICE_SELECT", "1"},
        // No driver may read or fill the user's own caches.
        {"FORNAX_CACHE_DIR", cache},
        {"MESA_SHADER_CACHE_DIR", cache},
        {"XDG_CACHE_HOME", cache},
        {"MESA_SHADER_CACHE_DISABLE", mesa_cache ? "" : "true"},
        {"FORNAX_CPU", target_ == kNativeTarget ? "" : target_},
    };
    if (threads_ != 0) {
        // Beside the processors that this process leaves itself: ScopedAffinity.
        process.environment["FORNAX_THREADS"] = std::to_string(threads_);
        process.environment["LP_NUM_THREADS"] = std::to_string(threads_);
    }
    process.log = log;
    process.timeout_seconds = kChildTimeoutSeconds;
    Result<int> exit_code = RunProcess(process);
    if (!exit_code.ok()) {
        const std::string last_line = LastLine(log);
        if (last_line.empty()) {
            return exit_code.error();
        }
        return Error{exit_code.error().code, fmt::format("{} Its last output was: {}",
                                                         exit_code.error().message, last_line)};
    }
    nlohmann::json json =
        nlohmann::json::parse(std::ifstream(output), nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("error")) {
        return Error{ErrorCode::kInternal, json["error"].get<std::string>()};
    }
    if (*exit_code != 0 || !json.is_object()) {
        return Error{ErrorCode::kInternal, fmt::format("It ended with status {} and said: {}",
                                                       *exit_code, LastLine(log))};
    }
    return json;
}

Result<Driver> Runner::Probe(const fs::path& manifest) {
    FORNAX_ASSIGN_OR_RETURN(const nlohmann::json json,
                            RunChild(manifest, {}, NewDirectory(), true));
    Driver driver;
    driver.manifest = manifest;
    driver.device = json.value("device", "");
    driver.driver_info = json.value("driver_info", "");
    driver.api_version = json.value("api_version", "");
    driver.is_cpu = json.value("is_cpu", false);
    driver.name = ShortDriverName(json.value("driver", driver.device));
    return driver;
}

Result<std::vector<Driver>> Runner::FindDrivers() {
    std::vector<Driver> drivers;
    std::set<fs::path> seen;
    if (options_.fornax_manifest.has_value()) {
        Announce("looking at Fornax");
        Result<Driver> fornax = Probe(*options_.fornax_manifest);
        if (!fornax.ok()) {
            return Error{fornax.error().code,
                         fmt::format("The Fornax driver of {} does not start: {}",
                                     options_.fornax_manifest->string(), fornax.error().message)};
        }
        drivers.push_back(std::move(fornax).value());
        drivers.back().is_fornax = true;
        seen.insert(fs::weakly_canonical(*options_.fornax_manifest));
    }
    std::vector<fs::path> candidates = CandidateManifests();
    std::set<fs::path> named;
    for (const std::string& wanted : options_.drivers) {
        if (fs::is_regular_file(wanted)) {
            candidates.push_back(wanted);
            named.insert(fs::weakly_canonical(wanted));
        }
    }
    for (const fs::path& manifest : candidates) {
        if (!seen.insert(fs::weakly_canonical(manifest)).second) {
            continue;
        }
        Announce(fmt::format("looking at {}", manifest.filename().string()));
        Result<Driver> driver = Probe(manifest);
        const bool is_named = named.contains(fs::weakly_canonical(manifest));
        if (!driver.ok() && is_named) {
            return Error{driver.error().code,
                         fmt::format("The driver of {} does not start: {}", manifest.string(),
                                     driver.error().message)};
        }
        // Most manifests of a distribution are for hardware that is not there. What is no CPU
        // driver, which another build of Fornax is not, is measured by explicit choice only.
        if (!driver.ok() || (!is_named && (!driver->is_cpu || driver->name == "Fornax"))) {
            continue;
        }
        if (driver->name == "Fornax" && !drivers.empty()) {
            driver->name = OtherBuildName(drivers);
        }
        drivers.push_back(std::move(driver).value());
    }
    FORNAX_ASSIGN_OR_RETURN(drivers, SelectDrivers(std::move(drivers), options_.drivers));
    if (drivers.empty()) {
        return Error{ErrorCode::kNotFound,
                     "There is no Vulkan CPU driver to measure: neither Fornax nor another."};
    }
    return drivers;
}

Result<std::vector<const Shape*>> Runner::FindShapes() const {
    std::vector<const Shape*> shapes;
    try {
        const std::regex filter(options_.filter);
        for (const Shape& shape : AllShapes()) {
            if (std::regex_search(shape.name, filter)) {
                shapes.push_back(&shape);
            }
        }
    } catch (const std::regex_error& error) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("The filter {} is not a regular expression: {}.", options_.filter,
                                 error.what())};
    }
    if (shapes.empty()) {
        return Error{ErrorCode::kNotFound,
                     fmt::format("No benchmark's name matches {}.", options_.filter)};
    }
    return shapes;
}

Result<double> Runner::MeasureOnce(const Shape& shape,
                                   const Driver& driver,
                                   bool verify,
                                   const fs::path& cache) {
    std::vector<std::string> more = {"--shape", shape.name};
    if (options_.quick) {
        more.push_back("--quick");
    }
    if (options_.validate) {
        more.push_back("--validate");
    }
    if (verify) {
        more.push_back("--verify");
    }
    FORNAX_ASSIGN_OR_RETURN(
        const nlohmann::json json,
        RunChild(driver.manifest, more, cache, shape.cache == CacheState::kFilled));
    const auto benchmarks = json.find("benchmarks");
    if (benchmarks == json.end() || benchmarks->empty() ||
        !benchmarks->front().contains("real_time")) {
        return Error{ErrorCode::kInternal, "The measuring process wrote no result."};
    }
    // Google Benchmark's default unit is the nanosecond, and manual time is called real time.
    const double seconds = benchmarks->front()["real_time"].get<double>() / 1e9;
    return shape.Value(seconds, shape.SizeFor(options_.quick));
}

ReportRow Runner::MeasureRow(const Shape& shape, const std::vector<Driver>& drivers) {
    ReportRow row = {&shape, shape.SizeFor(options_.quick), {}};
    row.cells.resize(drivers.size());
    std::vector<fs::path> filled_caches;
    for (size_t i = 0; i < drivers.size(); ++i) {
        filled_caches.push_back(NewDirectory());
    }

    // Round 0 checks the results and fills the caches; its times do not count.
    for (int round = 0; round <= options_.repetitions; ++round) {
        for (size_t i = 0; i < drivers.size(); ++i) {
            if (!row.cells[i].error.empty()) {
                continue;
            }
            Announce(fmt::format(
                "{} on {}, {}", shape.name, drivers[i].name,
                round == 0 ? "check" : fmt::format("{} of {}", round, options_.repetitions)));
            const fs::path cache =
                shape.cache == CacheState::kFilled ? filled_caches[i] : NewDirectory();
            Result<double> value = MeasureOnce(shape, drivers[i], round == 0, cache);
            if (!value.ok()) {
                row.cells[i].error = value.error().message;
            } else if (round != 0) {
                row.cells[i].values.push_back(*value);
            }
        }
    }
    return row;
}

}  // namespace

Result<std::vector<Report>> RunBenchmarks(const BenchOptions& options) {
    FORNAX_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::Create("bench"));
    Runner runner(options, scratch);
    FORNAX_ASSIGN_OR_RETURN(const std::vector<const Shape*> shapes, runner.FindShapes());
    // What cannot be run is said before anything is measured.
    std::vector<uint32_t> vector_bits;
    for (const std::string& target : options.targets) {
        FORNAX_ASSIGN_OR_RETURN(const kernel::TargetInfo info,
                                kernel::DetectTarget(target == kNativeTarget ? "" : target));
        vector_bits.push_back(info.vector_bits);
    }
    for (int threads : options.threads) {
        if (auto affinity = ScopedAffinity::Create(threads); !affinity.ok()) {
            return affinity.error();
        }
    }
    FORNAX_ASSIGN_OR_RETURN(const std::vector<Driver> drivers, runner.FindDrivers());

    std::vector<Report> reports;
    for (size_t i = 0; i < options.targets.size(); ++i) {
        for (int threads : options.threads) {
            FORNAX_ASSIGN_OR_RETURN(const ScopedAffinity affinity, ScopedAffinity::Create(threads));
            runner.Configure(options.targets[i], threads);
            Report& report = reports.emplace_back();
            report.processor = HostProcessorName();
            report.target = options.targets[i];
            getloadavg(&report.load_average, 1);
            report.quick = options.quick;
            report.repetitions = options.repetitions;
            report.drivers = drivers;
            auto measure_limits = [&] {
                if (options.progress) {
                    options.progress("host limits");
                }
                report.limits =
                    BestOf(report.limits, MeasureHostLimits(options.quick, vector_bits[i]));
            };
            measure_limits();
            for (const Shape* shape : shapes) {
                report.rows.push_back(runner.MeasureRow(*shape, drivers));
            }
            measure_limits();
        }
    }
    return reports;
}

}  // namespace fornax::bench
