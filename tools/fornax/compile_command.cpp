// `fornax compile`: a model in, a plan file out.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/file.h"
#include "base/printable.h"
#include "compiler/graph/plan/plan_file.h"
#include "runtime/compile_model.h"
#include "tools/fornax/command.h"
#include "tools/fornax/network.h"
#include "tools/fornax/run_report.h"
#include "tools/fornax/text_table.h"

namespace fornax::tool {
namespace {

constexpr const char* kExamples =
    "A plan is for the sizes that it is made with: those of --dim, else 1. Sizes of --dynamic "
    "stay\n"
    "open, which makes slower kernels.\n"
    "\n"
    "Examples:\n"
    "  fornax compile models/digits.onnx -o digits.plan --dynamic N\n"
    "  fornax compile model.onnx --dim batch=8 --explain";

// ONNX files are at most 2 GiB of protobuf.
constexpr size_t kMaxModelBytes = size_t{2} << 30;

struct Options {
    NetworkOptions network;
    std::vector<std::string> dynamic;
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

Status CheckNames(const Network& network,
                  const std::map<std::string, int64_t>& dims,
                  const std::vector<std::string>& dynamic) {
    std::set<std::string> open, asked(dynamic.begin(), dynamic.end());
    for (const NetworkInput& input : network.inputs) {
        for (const graph::Expr& dim : input.type.shape.dims()) {
            for (const graph::Symbol& symbol : dim.Symbols()) {
                open.insert(symbol.name());
            }
        }
    }
    for (const auto& [name, size] : dims) {
        asked.insert(name);
    }
    for (const std::string& name : asked) {
        if (!open.contains(name)) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("{} leaves no size {} open; those that it does are: {}.", network.path,
                            name, open.empty() ? "none" : fmt::to_string(fmt::join(open, ", ")))};
        }
    }
    return OkStatus();
}

Result<graph::Plan> CompilePlan(const Options& options,
                                const std::map<std::string, int64_t>& dims) {
    FORNAX_ASSIGN_OR_RETURN(const Network network, DescribeNetwork(options.network.path));
    FORNAX_RETURN_IF_ERROR(CheckNames(network, dims, options.dynamic));
    runtime::CompileRequest request;
    FORNAX_ASSIGN_OR_RETURN(std::string bytes, ReadTextFile(network.path, kMaxModelBytes));
    request.bytes = std::make_shared<const std::string>(std::move(bytes));
    request.name = network.path;
    const std::filesystem::path path(network.path);
    request.directory = path.has_parent_path() ? path.parent_path().string() : ".";
    request.dims = dims;
    request.strict = options.network.strict;
    request.precision = options.network.ParsedPrecision();
    request.dynamic_sizes = {options.dynamic.begin(), options.dynamic.end()};
    FORNAX_ASSIGN_OR_RETURN(runtime::CompiledModel compiled,
                            runtime::CompileModel(std::move(request)));
    return std::move(compiled.plan);
}

void Compile(const Options& options) {
    if (options.output.empty() && !options.explain) {
        ExitWithError({ErrorCode::kInvalidArgument,
                       "compile needs a file to write, `-o FILE`, or --explain."},
                      kExitUsage);
    }
    const std::map<std::string, int64_t> dims =
        ValueOrExit(options.network.ParseDims(), kExitUsage);
    const auto start = std::chrono::steady_clock::now();
    const graph::Plan plan = ValueOrExit(CompilePlan(options, dims));
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    if (options.explain) {
        fmt::print("{}", graph::ToText(plan));
    }
    if (options.output.empty()) {
        return;
    }
    const std::vector<std::byte> bytes = ValueOrExit(graph::SerializePlan(plan));
    ExitIfError(WriteOutputFile(options.output, bytes));
    FILE* const messages = IsStandardOutput(options.output) ? stderr : stdout;
    fmt::print(messages,
               "plan of {}: compiled in {:.1f} ms, {} steps of {} kernels, {} written to {}\n{}{}",
               Printable(plan.name), time.count(), plan.steps.size(), plan.kernels.size(),
               FormatBytes(bytes.size()), options.output, HostStepList(plan),
               MemorySummary(plan, ValueOrExit(graph::PlanMemory(plan, plan.hints))));
}

}  // namespace

void AddCompileCommand(CLI::App& app) {
    CLI::App* compile = app.add_subcommand("compile", "Compile a neural network to a plan file");
    compile->footer(kExamples);
    auto options = std::make_shared<Options>();
    options->network.AddTo(*compile);
    compile
        ->add_option("--dynamic", options->dynamic,
                     "A size that the plan serves whatever it is, by name")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    compile->add_option("-o,--output", options->output, "The plan file to write");
    compile->add_flag("--explain", options->explain, "Print the plan");
    compile->callback([options] { Compile(*options); });
}

}  // namespace fornax::tool
