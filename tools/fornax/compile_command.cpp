// `fornax compile`: a model in, a plan file out.
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include <fmt/format.h>

#include "base/file.h"
#include "compiler/legacy_graph/plan_file.h"
#include "tools/fornax/command.h"
#include "tools/fornax/graph_options.h"
#include "tools/fornax/graph_report.h"
#include "tools/fornax/text_table.h"

namespace fornax::tool {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  fornax compile models/digits.onnx -o digits.plan\n"
    "  fornax compile models/digits.onnx --batch 1 --explain";

struct Options {
    GraphOptions graph;
    std::string output;
    bool explain = false;
};

// Whether the path leads to the pipe or file that standard output is: a plan that goes there is for
// a program to read, and no other text may follow it.
bool IsStandardOutput(const std::string& path) {
    struct stat named, output;
    return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 &&
           named.st_dev == output.st_dev && named.st_ino == output.st_ino &&
           !S_ISCHR(named.st_mode);
}

void Compile(const Options& options) {
    if (options.output.empty() && !options.explain) {
        ExitWithError({ErrorCode::kInvalidArgument,
                       "compile needs a file to write, `-o FILE`, or --explain."},
                      kExitUsage);
    }
    const PlanRequest request = ValueOrExit(options.graph.ToRequest(kDefaultBatch), kExitUsage);
    DiskCache cache = DiskCache::OpenDefault();
    const LoadedPlan loaded = ValueOrExit(LoadPlan(request, cache));
    if (options.explain) {
        fmt::print("{}", legacy_graph::ToText(loaded.plan));
    }
    if (options.output.empty()) {
        return;
    }
    const std::vector<std::byte> bytes = ValueOrExit(legacy_graph::SerializePlan(loaded.plan));
    ExitIfError(WriteOutputFile(options.output, bytes));
    fmt::print(IsStandardOutput(options.output) ? stderr : stdout,
               "plan {} of {}: {}, {} dispatches, {} written to {}\n", loaded.plan.graph_hash,
               loaded.plan.name, loaded.Describe(), loaded.plan.dispatches.size(),
               FormatBytes(bytes.size()), options.output);
}

}  // namespace

void AddCompileCommand(CLI::App& app) {
    CLI::App* compile = app.add_subcommand("compile", "Compile a neural network to a plan file");
    compile->footer(kExamples);
    auto options = std::make_shared<Options>();
    options->graph.AddTo(*compile);
    compile->add_option("-o,--output", options->output, "The plan file to write");
    compile->add_flag("--explain", options->explain, "Print the plan");
    compile->callback([options] { Compile(*options); });
}

}  // namespace fornax::tool
