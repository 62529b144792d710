// `fornax soak`: mixed load on the Fornax device for a long time, with memory watched.
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "tools/fornax/command.h"
#include "tools/fornax/manifest.h"
#include "tools/fornax/text_table.h"
#include "tools/soak/soak.h"

namespace fornax::tool {
namespace {

std::string Footer() {
    std::string text =
        "Every result is checked. The cache of compiled kernels is a fresh one. Fails when a load "
        "fails, or\nwhen memory grows (from six samples on).\n\nLoads, and one round of each:\n";
    for (const soak::Load& load : soak::AllLoads()) {
        text += fmt::format("  {:<12} {}\n", load.name, load.what);
    }
    text +=
        "\nExamples:\n"
        "  fornax soak --minutes 60\n"
        "  fornax soak --minutes 5 --load pipelines,instances";
    return text;
}

// One line a sample: minutes, memory, rounds of each load.
void PrintSample(const soak::SoakReport& report) {
    constexpr const char* kCell = "{:>13}";
    if (report.samples.size() == 1) {
        std::string header = fmt::format("{:>8} {:>10}", "minutes", "RSS KiB");
        for (const soak::Load* load : report.loads) {
            header += fmt::format(kCell, load->name);
        }
        fmt::print("{}\n", header);
    }
    const soak::SoakSample& sample = report.samples.back();
    std::string line = fmt::format("{:>8.2f} {:>10}", sample.minutes, sample.resident_kib);
    for (const uint64_t rounds : sample.rounds) {
        line += fmt::format(kCell, rounds);
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

void Soak(const soak::SoakOptions& options) {
    SelectDriver(ValueOrExit(FindManifest()));
    setenv("FORNAX_LOG_LEVEL", "off", 0);  // lost devices are expected
    setenv("FORNAX_CACHE_MIB", "16", 0);   // so that entries are removed as well
    std::string cache = std::filesystem::temp_directory_path() / "fornax-soak-XXXXXX";
    if (mkdtemp(cache.data()) == nullptr) {
        ExitWithError({ErrorCode::kIo, fmt::format("{} cannot be created.", cache)});
    }
    setenv("FORNAX_CACHE_DIR", cache.c_str(), 1);
    Result<soak::SoakReport> result = soak::RunSoak(options, PrintSample);
    std::error_code ignored;
    std::filesystem::remove_all(cache, ignored);
    const soak::SoakReport report = ValueOrExit(std::move(result), kExitUsage);
    if (report.memory_judged) {
        fmt::print("Memory on average, after a warm-up: {} in the first half, {} in the second.\n",
                   FormatBytes(report.first_kib * 1024), FormatBytes(report.second_kib * 1024));
    } else {
        fmt::print("Memory is not judged: {} samples, and {} are needed.\n", report.samples.size(),
                   soak::kLeastSamples);
    }
    for (const std::string& failure : report.failures) {
        fmt::print(stderr, "fornax: {}\n", failure);
    }
    if (!report.failures.empty()) {
        ExitWithCode(kExitFailure);
    }
}

}  // namespace

void AddSoakCommand(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("soak", "Load the Fornax device for a long time and watch its memory");
    command->footer(Footer());
    auto options = std::make_shared<soak::SoakOptions>();
    command->add_option("--minutes", options->minutes, "How long")
        ->check(CLI::Range(0.01, 1e5))
        ->capture_default_str();
    command->add_option("--interval", options->interval_seconds, "Seconds between two lines")
        ->check(CLI::Range(0.1, 3600.0))
        ->capture_default_str();
    command
        ->add_option(
            "--growth", options->most_growth_mib,
            "MiB by which memory may grow on average, from one half of the time to the other")
        ->capture_default_str();
    command->add_option("--load", options->loads, "Only these loads (separated by commas)")
        ->delimiter(',');
    command->callback([options] { Soak(*options); });
}

}  // namespace fornax::tool
