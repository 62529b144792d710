// `fornax bench`: measures Fornax beside every other Vulkan CPU driver present.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tools/bench/child.h"
#include "tools/bench/host_limits.h"
#include "tools/bench/report.h"
#include "tools/bench/runner.h"
#include "tools/fornax/command.h"
#include "tools/fornax/manifest.h"
#include "tools/fornax/reference.h"

namespace fornax::tool {
namespace {

std::string Footer() {
    std::string names;
    for (const bench::Shape& shape : bench::AllShapes()) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", shape.name);
    }
    return fmt::format(
        "Each measurement runs in a process of its own, with caches of its own; drivers take "
        "turns.\n"
        "Results are checked against C++ references before they are timed. Ratios are how many\n"
        "times better Fornax is.\n"
        "\n"
        "Benchmarks: {}.\n"
        "\n"
        "Examples:\n"
        "  fornax bench\n"
        "  fornax bench --filter 'saxpy|copy' --repetitions 9 --json numbers.json\n"
        "  fornax bench --drivers fornax,lavapipe\n"
        "  fornax bench --drivers fornax,/opt/mesa/share/vulkan/icd.d/lvp_icd.x86_64.json\n"
        "  fornax bench --drivers fornax,../older/build/release/icd/fornax_icd.x86_64.json\n"
        "  fornax bench --targets native,haswell --threads 1,2",
        names);
}

// Shows what is being done on a terminal, in one line that the next step overwrites.
void ShowProgress(const std::string& step) {
    fmt::print(stderr, "\r\033[K{}", step);
    std::fflush(stderr);
}

void Bench(bench::BenchOptions options, const std::string& json_file) {
    options.program = ValueOrExit(ExecutablePath());
    Result<std::filesystem::path> manifest = FindManifest();
    if (manifest.ok()) {
        options.fornax_manifest = *manifest;
    } else {
        fmt::print(stderr, "fornax: {} Only other drivers are measured.\n",
                   manifest.error().message);
    }
    const bool is_terminal = isatty(STDERR_FILENO) != 0;
    if (is_terminal) {
        options.progress = ShowProgress;
    }
    Result<std::vector<bench::Report>> result = bench::RunBenchmarks(options);
    if (is_terminal) {
        ShowProgress("");
    }
    const std::vector<bench::Report> reports = ValueOrExit(std::move(result));

    bool failures = false;
    for (const bench::Report& report : reports) {
        fmt::print("{}{}", &report == &reports.front() ? "" : "\n", bench::FormatReport(report));
        failures |= report.HasFailures();
    }
    if (!json_file.empty()) {
        ExitIfError(WriteOutputFile(json_file, bench::ReportsToJson(reports).dump(2) + "\n"));
    }
    if (failures) {
        ExitWithCode(kExitFailure);
    }
}

// The measuring process that RunBenchmarks starts; not for users.
void AddBenchChildCommand(CLI::App& app) {
    CLI::App* child = app.add_subcommand("bench-child", "Measure one benchmark on one driver");
    child->group("");  // hidden
    auto options = std::make_shared<bench::ChildOptions>();
    child->add_option("--shape", options->shape);
    child->add_option("--output", options->output)->required();
    child->add_flag("--quick", options->quick);
    child->add_flag("--verify", options->verify);
    child->add_flag("--validate", options->validate);
    child->callback([options] { ExitWithCode(bench::ChildMain(*options)); });
}

[[noreturn]] void Become(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    ExitWithError({ErrorCode::kNotFound, fmt::format("{} cannot be started.", words[0])});
}

// What benchmarks are compared with, for scripts that measure other programs in the same run.
void AddBenchLimitsCommand(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "limits", "Measure what this machine can do: peak of products and bandwidths of memory");
    command->footer(
        "Plain C++ loops on all threads, the fastest of some rounds. It takes a second or two.\n"
        "\n"
        "Examples:\n"
        "  fornax bench limits\n"
        "  fornax bench limits --json limits.json");
    auto quick = std::make_shared<bool>(false);
    auto json_file = std::make_shared<std::string>();
    command->add_flag("--quick", *quick, "Smaller arrays and fewer rounds: less exact");
    command->add_option("--json", *json_file, "Write the limits to this file");
    command->callback([quick, json_file] {
        const bench::HostLimits limits = bench::MeasureHostLimits(*quick);
        fmt::print("{}, {} {}\n\n{}", bench::HostProcessorName(), limits.threads,
                   limits.threads == 1 ? "thread" : "threads", bench::FormatLimits(limits));
        if (!json_file->empty()) {
            ExitIfError(WriteOutputFile(*json_file, bench::LimitsToJson(limits).dump(2) + "\n"));
        }
    });
}

// The programs that it runs come from elsewhere and so does what sets them up: a script of the
// source tree, which has the options, too.
void AddBenchLlamaCommand(CLI::App& bench) {
    CLI::App* command = bench.add_subcommand(
        "llama", "Measure llama.cpp on Fornax, lavapipe and its CPU backend (--help: its options)");
    command->set_help_flag();
    command->prefix_command();
    command->callback([command] {
        const std::filesystem::path script = FORNAX_CLIENT_TOOLS "/bench_llama.py";
        if (!std::filesystem::exists(script)) {
            ExitWithError({ErrorCode::kNotFound,
                           fmt::format("{} does not exist; `fornax bench llama` needs the source "
                                       "tree that the command was built from.",
                                       script.string())});
        }
        std::vector<std::string> words = command->remaining();
        words.insert(words.begin(), {ValueOrExit(FindPython("")), script.string()});
        Become(std::move(words));
    });
}

void AddBenchModule(CLI::App& bench,
                    const char* name,
                    const char* summary,
                    std::vector<std::string> module) {
    AddModuleCallback(*bench.add_subcommand(name, summary), std::move(module));
}

}  // namespace

void AddModuleCallback(CLI::App& app, std::vector<std::string> module) {
    CLI::App* command = &app;
    command->set_help_flag();
    command->prefix_command();
    command->callback([command, module = std::move(module)] {
        const std::string tree = ValueOrExit(SourceTree());
        std::vector<std::string> words = {ValueOrExit(FindPython("")), "-m"};
        words.insert(words.end(), module.begin(), module.end());
        words.insert(words.end(), {"--fornax", ValueOrExit(ExecutablePath()).string()});
        const std::vector<std::string> rest = command->remaining();
        words.insert(words.end(), rest.begin(), rest.end());
        setenv("PYTHONPATH", tree.c_str(), 1);
        Become(std::move(words));
    });
}

void AddBenchCommand(CLI::App& app) {
    CLI::App* command =
        app.add_subcommand("bench", "Measure Fornax and every other Vulkan CPU driver present");
    command->footer(Footer());
    auto options = std::make_shared<bench::BenchOptions>();
    auto json_file = std::make_shared<std::string>();
    command->add_option("--filter", options->filter,
                        "Only benchmarks whose name matches this regular expression");
    command
        ->add_option("--repetitions", options->repetitions,
                     "Measurements of each; the median counts")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command
        ->add_option("--drivers", options->drivers,
                     "Only drivers of these names, or manifest files (separated by commas)")
        ->delimiter(',');
    command
        ->add_option(
            "--targets", options->targets,
            "Processors that Fornax compiles its kernels for: native, or LLVM's names such "
            "as haswell for AVX2; the whole run is repeated for each")
        ->delimiter(',');
    command
        ->add_option("--threads", options->threads,
                     "Numbers of processors that everything is measured with, 0 for all; the whole "
                     "run is repeated for each")
        ->delimiter(',')
        ->check(CLI::Range(0, 1024));
    command->add_option("--json", *json_file, "Write all measurements to this file");
    command->add_flag("--quick", options->quick, "Small sizes, to see that all works");
    command->add_flag("--validate", options->validate,
                      "Run under the Vulkan validation layer, and fail on any message");
    AddBenchLimitsCommand(*command);
    AddBenchLlamaCommand(*command);
    AddBenchModule(*command, "models", "Measure networks beside onnxruntime (--help: its options)",
                   {"tools.models", "bench"});
    AddBenchModule(*command, "torch",
                   "Measure networks of PyTorch beside Inductor (--help: its options)",
                   {"tools.torch_bench"});
    command->callback([command, options, json_file] {
        if (command->get_subcommands().empty()) {
            Bench(*options, *json_file);
        }
    });
    AddBenchChildCommand(app);
}

}  // namespace fornax::tool
