// `fornax compile`: a model in, a plan file out.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/file.h"
#include "base/printable.h"
#include "compiler/frontends/onnx/importer.h"
#include "compiler/graph/c/emit_c.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/export/exported_model.h"
#include "compiler/graph/plan/plan_file.h"
#include "runtime/compile_model.h"
#include "tools/fornax/command.h"
#include "tools/fornax/network.h"
#include "tools/fornax/plan_report.h"
#include "tools/fornax/progress.h"
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

struct Options {
    NetworkOptions network;
    std::string output;
    std::string report_dir;
    std::string emit = "plan";
    std::string name;
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

constexpr std::string_view kGraphBegin = "graph \"";

// The text of a graph, if the file holds one.
std::optional<std::string> ReadGraphText(const std::string& path) {
    const Result<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
    if (!file.ok()) {
        return std::nullopt;
    }
    const std::span<const std::byte> bytes = (*file)->bytes();
    std::string text(reinterpret_cast<const char*>(bytes.data()),
                     std::min(bytes.size(), kGraphBegin.size()));
    if (text != kGraphBegin) {
        return std::nullopt;
    }
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text;
}

Result<runtime::CompiledModel> CompileGraphText(const Options& options, const std::string& text) {
    FORNAX_ASSIGN_OR_RETURN(graph::Graph graph, graph::ParseGraph(text));
    FORNAX_RETURN_IF_ERROR(graph::Verify(graph));
    graph::CompileOptions compile;
    compile.strict = options.network.strict;
    compile.precision = options.network.ParsedPrecision();
    compile.serial = options.emit == "c";
    compile.dynamic_sizes = {options.network.dynamic.begin(), options.network.dynamic.end()};
    runtime::CompiledModel compiled;
    FORNAX_ASSIGN_OR_RETURN(compiled.plan,
                            graph::Compile(std::move(graph), compile, &compiled.boundaries));
    return compiled;
}

Result<runtime::CompiledModel> CompilePlan(const Options& options,
                                           const std::map<std::string, int64_t>& dims) {
    if (const std::optional<std::string> text = ReadGraphText(options.network.path)) {
        return CompileGraphText(options, *text);
    }
    FORNAX_ASSIGN_OR_RETURN(const Network network, DescribeNetwork(options.network.path));
    std::set<std::string> names(options.network.dynamic.begin(), options.network.dynamic.end());
    for (const auto& [name, size] : dims) {
        names.insert(name);
    }
    std::vector<graph::TensorType> types;
    for (const NetworkInput& input : network.inputs) {
        types.push_back(input.type);
    }
    FORNAX_RETURN_IF_ERROR(runtime::CheckSizeNames(network.path, names, types));
    runtime::CompileRequest request;
    request.file.path = network.path;
    request.dims = dims;
    request.strict = options.network.strict;
    request.precision = options.network.ParsedPrecision();
    request.serial = options.emit == "c";
    request.dynamic_sizes.names = {options.network.dynamic.begin(), options.network.dynamic.end()};
    request.with_boundaries = options.explain || !options.report_dir.empty();
    ProgressLine line;
    request.progress = [&line](const runtime::LoadProgress& progress) {
        line.Show(progress.stage, progress.done, progress.total);
    };
    return runtime::CompileModel(std::move(request));
}

// The model as the graph compiler reads it, for other programs.
Status EmitModel(const Options& options, const std::map<std::string, int64_t>& dims) {
    onnx_frontend::ImportOptions import;
    import.dims = dims;
    import.strict = options.network.strict;
    FORNAX_ASSIGN_OR_RETURN(onnx_frontend::ImportedModel model,
                            onnx_frontend::ImportModelFile(options.network.path, import));
    for (const auto& [name, length] : model.output_lengths) {
        if (length != -1) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("{}: the output {} is no tensor, so it is not exported.",
                                     options.network.path, name)};
        }
    }
    const std::set<std::string> dynamic(options.network.dynamic.begin(),
                                        options.network.dynamic.end());
    FORNAX_ASSIGN_OR_RETURN(const graph::Graph graph,
                            graph::LowerToPrimitives(std::move(model.graph), dynamic));
    graph::ExportOptions names;
    if (options.emit == "torch") {
        names.names = graph::PythonNames(graph);
    }
    FORNAX_ASSIGN_OR_RETURN(const graph::ExportedModel exported, graph::ExportGraph(graph, names));
    FORNAX_RETURN_IF_ERROR(options.emit == "onnx" ? graph::WriteOnnx(exported, options.output)
                                                  : graph::WriteTorch(exported, options.output));
    fmt::print("{} nodes of opset {} written to {}\n", exported.nodes.size(), graph::kExportedOpset,
               options.output);
    return OkStatus();
}

// The program's name is the model's, without its directory and ending.
std::string ProgramName(const Options& options) {
    return options.name.empty()
               ? graph::c::Identifier(std::filesystem::path(options.network.path).stem().string())
               : options.name;
}

// The model as a program in C, in a directory.
Status EmitProgram(const Options& options, const std::map<std::string, int64_t>& dims) {
    FORNAX_ASSIGN_OR_RETURN(const runtime::CompiledModel compiled, CompilePlan(options, dims));
    FORNAX_ASSIGN_OR_RETURN(const std::vector<graph::c::ProgramFile> files,
                            graph::c::EmitProgram(compiled.plan, ProgramName(options)));
    std::error_code error;
    std::filesystem::create_directories(options.output, error);
    if (error) {
        return Error{ErrorCode::kIo, fmt::format("{}: the directory cannot be made: {}.",
                                                 options.output, error.message())};
    }
    for (const graph::c::ProgramFile& file : files) {
        const std::string path = (std::filesystem::path(options.output) / file.name).string();
        FORNAX_RETURN_IF_ERROR(WriteOutputFile(path, file.bytes));
    }
    FORNAX_ASSIGN_OR_RETURN(const graph::MemoryPlan memory,
                            graph::PlanMemory(compiled.plan, compiled.plan.hints));
    fmt::print("{} steps of {} kernels as a program in C, written to {}\n{}",
               compiled.plan.steps.size(), compiled.plan.kernels.size(), options.output,
               MemorySummary(compiled.plan, memory));
    return OkStatus();
}

void Compile(const Options& options) {
    if (options.output.empty() && !options.explain && options.report_dir.empty()) {
        ExitWithError({ErrorCode::kInvalidArgument,
                       "compile needs something to do: `-o FILE`, --explain or --write-report."},
                      kExitUsage);
    }
    const std::map<std::string, int64_t> dims =
        ValueOrExit(options.network.ParseDims(), kExitUsage);
    if (options.emit != "plan") {
        if (options.output.empty()) {
            ExitWithError({ErrorCode::kInvalidArgument,
                           fmt::format("--emit {} needs `-o FILE`.", options.emit)},
                          kExitUsage);
        }
        ExitIfError(options.emit == "c" ? EmitProgram(options, dims) : EmitModel(options, dims));
        return;
    }
    const auto start = std::chrono::steady_clock::now();
    const runtime::CompiledModel compiled = ValueOrExit(CompilePlan(options, dims));
    const graph::Plan& plan = compiled.plan;
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    const graph::MemoryPlan memory = ValueOrExit(graph::PlanMemory(plan, plan.hints));
    FILE* const messages = IsStandardOutput(options.output) ? stderr : stdout;
    if (options.explain) {
        fmt::print(messages, "{}{}{}", BoundaryTable(compiled.boundaries, plan.hints),
                   HostStepList(plan), MemorySummary(plan, memory));
    }
    if (!options.report_dir.empty()) {
        ExitIfError(WritePlanReport(options.report_dir,
                                    {plan, compiled.boundaries, plan.hints, memory, ""}));
    }
    if (options.output.empty()) {
        return;
    }
    const std::vector<std::byte> bytes = ValueOrExit(graph::SerializePlan(plan));
    ExitIfError(WriteOutputFile(options.output, bytes));
    fmt::print(messages,
               "plan of {}: compiled in {:.1f} ms, {} steps of {} kernels, {} written to {}\n{}{}",
               Printable(plan.name), time.count(), plan.steps.size(), plan.kernels.size(),
               FormatBytes(bytes.size()), options.output, HostStepList(plan),
               MemorySummary(plan, memory));
}

}  // namespace

void AddCompileCommand(CLI::App& app) {
    CLI::App* compile = app.add_subcommand("compile", "Compile a neural network to a plan file");
    compile->footer(kExamples);
    auto options = std::make_shared<Options>();
    options->network.AddTo(*compile);
    compile->add_option("-o,--output", options->output,
                        "The file to write; with --emit c the directory");
    compile
        ->add_option(
            "--emit", options->emit,
            "plan, onnx (the model in operators of ONNX) or torch (as a script of PyTorch), "
            "for the sizes of --dim and any of --dynamic; c (a program, in the directory of -o), "
            "for the sizes of --dim")
        ->check(CLI::IsMember({"plan", "onnx", "torch", "c"}));
    compile->add_option("--name", options->name,
                        "With --emit c: what its files and functions are called");
    compile->add_flag("--explain", options->explain,
                      "Print why each value between kernels lies in memory, and how large it is");
    compile->add_option("--write-report", options->report_dir,
                        "A directory for text files: nodes.txt (which kernel computes a node), "
                        "boundaries.txt, plan.txt, memory.txt");
    compile->callback([options] { Compile(*options); });
}

}  // namespace fornax::tool
