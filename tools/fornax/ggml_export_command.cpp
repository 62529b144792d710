// `fornax ggml export`: runs a model once, and keeps what its graphs became.
//
// The graphs of a model are those that a program of ggml makes of it, so one is run, as it is, with
// the backend told to write down what it computes.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/file.h"
#include "tools/fornax/command.h"
#include "tools/fornax/gguf.h"
#include "tools/fornax/manifest.h"

namespace fornax::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples =
    "llama-bench of the PATH runs the model, with a prompt of --prompt tokens and --tokens more. "
    "A\n"
    "command behind `--` runs in its place, with {} for the model: graphs depend on the program\n"
    "and its options, the size of its context above all.\n"
    "\n"
    "Examples:\n"
    "  fornax ggml export model.gguf -o kernels\n"
    "  fornax ggml export model.gguf -o kernels -- llama-cli -m {} -ngl 99 -p Hello -n 32 -no-cnv\n"
    "  FORNAX_KERNEL_DIR=kernels fornax ggml -- llama-bench -m model.gguf -ngl 99";

struct Options {
    std::string model;
    std::string output;
    std::vector<std::string> formats = {"plan"};
    int prompt = 512;
    int tokens = 16;
};

std::set<std::string> FilesIn(const std::string& directory) {
    std::set<std::string> names;
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
        names.insert(entry.path().filename());
    }
    return names;
}

size_t CountOf(const std::set<std::string>& names, std::string_view extension) {
    return static_cast<size_t>(std::ranges::count_if(
        names, [&](const std::string& name) { return name.ends_with(extension); }));
}

std::vector<std::string> CommandOf(const Options& options, std::vector<std::string> command) {
    if (command.empty()) {
        command = {"llama-bench",
                   "-m",
                   "{}",
                   "-ngl",
                   "99",
                   "-r",
                   "1",
                   "-p",
                   std::to_string(options.prompt),
                   "-n",
                   std::to_string(options.tokens)};
    }
    std::ranges::replace(command, std::string("{}"), options.model);
    return command;
}

// The command's exit code. Its standard output becomes our standard error.
int RunCommand(std::vector<std::string> command) {
    const pid_t child = ::fork();
    if (child < 0) {
        ExitWithError({ErrorCode::kIo,
                       fmt::format("{} cannot be started: {}.", command[0], ErrnoMessage(errno))});
    }
    if (child == 0) {
        ::dup2(STDERR_FILENO, STDOUT_FILENO);
        BecomeCommand(std::move(command));
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        ExitWithError({ErrorCode::kIo,
                       fmt::format("{} was ended by signal {}.", command[0], WTERMSIG(status))});
    }
    return WEXITSTATUS(status);
}

void Export(const Options& options, std::vector<std::string> command) {
    const auto mapped = ValueOrExit(MappedFile::Open(options.model));
    const GgufSummary model = ValueOrExit(ReadGguf(mapped->bytes(), options.model));
    SelectDriver(ValueOrExit(FindManifest(), kExitExecFailed));
    SelectGgmlBackend(ValueOrExit(FindGgmlBackend(), kExitExecFailed));
    ExitIfError(CreateDirectories(options.output, 0755));
    std::error_code ignored;
    const std::string directory = fs::absolute(options.output, ignored);
    setenv("FORNAX_GGML_EXPORT", directory.c_str(), 1);
    const std::string formats = fmt::to_string(fmt::join(options.formats, ","));
    setenv("FORNAX_GGML_EXPORT_FORMATS", formats.c_str(), 1);
    const std::set<std::string> before = FilesIn(directory);
    const int code = RunCommand(CommandOf(options, std::move(command)));
    if (code != 0) {
        ExitWithError(
            {ErrorCode::kIo,
             fmt::format("The program that runs {} ended with status {}{}.", options.model, code,
                         code == kExitExecNotFound ? ": there is no such command" : "")});
    }
    const std::set<std::string> after = FilesIn(directory);
    size_t written = 0;
    for (const std::string& format : options.formats) {
        const std::string extension = format == "plan"   ? ".plan"
                                      : format == "onnx" ? ".onnx"
                                                         : ".py";
        const size_t count = CountOf(after, extension);
        written += count;
        const auto families =
            static_cast<size_t>(std::ranges::count_if(after, [&](const std::string& name) {
                return name.starts_with("family_") && name.ends_with(extension);
            }));
        fmt::print(
            "{} of {} graphs in {}, {} of them new{}\n",
            format == "plan"   ? "plans"
            : format == "onnx" ? "ONNX files"
                               : "PyTorch scripts",
            count, options.output, count - CountOf(before, extension),
            families == 0 ? "" : fmt::format(", {} of them for any size of a family", families));
    }
    if (written == 0) {
        ExitWithError({ErrorCode::kNotFound,
                       fmt::format("The program computed no graph of {} ({}, {} tensors) on the "
                                   "device: does it put layers there?",
                                   options.model, model.architecture, model.tensors)});
    }
}

}  // namespace

void AddGgmlExportCommand(CLI::App& ggml, std::vector<std::string> command) {
    CLI::App* app = ggml.add_subcommand("export", "Write the kernels of a model's graphs");
    app->footer(kExamples);
    auto options = std::make_shared<Options>();
    app->add_option("model", options->model, "A GGUF file")->required();
    app->add_option("-o,--output", options->output, "The directory to write to")->required();
    app->add_option("--formats", options->formats,
                    "What to write of each graph: plan (for FORNAX_KERNEL_DIR), onnx, torch (a "
                    "script of PyTorch)")
        ->delimiter(',')
        ->check(CLI::IsMember({"plan", "onnx", "torch"}));
    app->add_option("--prompt", options->prompt, "Tokens of the prompt")
        ->check(CLI::Range(1, 1 << 20));
    app->add_option("--tokens", options->tokens, "Tokens that are generated")
        ->check(CLI::Range(1, 1 << 20));
    app->callback([options, command = std::move(command)] { Export(*options, command); });
}

}  // namespace fornax::tool
