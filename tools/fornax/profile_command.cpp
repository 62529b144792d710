// `fornax profile`: cost records, of a file or of a command that is run, as tables, a trace and a
// page for a described machine.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/scratch_directory.h"
#include "npu/description/read.h"
#include "npu/replay/record_file.h"
#include "tools/fornax/command.h"
#include "tools/fornax/manifest.h"
#include "tools/fornax/progress.h"
#include "tools/replay/page.h"
#include "tools/replay/trace.h"

namespace fornax::tool {
namespace {

constexpr const char* kExamples =
    "Records come from a file, or from a command, which is any Vulkan program: it runs on the\n"
    "Fornax device, and FORNAX_NPU_RECORDS names the file that the driver writes them to.\n"
    "DIR gets profile.txt, profile.json, trace.perfetto-trace (for ui.perfetto.dev) and\n"
    "profile.html; of a command also records.jsonl.\n"
    "\n"
    "Examples:\n"
    "  fornax run model.onnx --records model.jsonl\n"
    "  fornax profile model.jsonl --npu laptop-45 -o profile\n"
    "  fornax profile --npu edge-4 -o profile -- llama-bench -m model.gguf -ngl 99\n"
    "\n"
    "Exit status: the command's own if that is not 0.";

struct Options {
    std::string records;
    std::string machine;
    std::string directory;
    size_t top = 20;
    bool as_json = false;
};

[[noreturn]] void WrongUsage(std::string message) {
    ExitWithError({ErrorCode::kInvalidArgument, std::move(message)}, kExitUsage);
}

npu::Description MachineOf(const std::string& name) {
    if (!name.empty()) {
        return ValueOrExit(npu::LoadDescription(name));
    }
    auto described = ValueOrExit(npu::DescriptionOfEnvironment());
    if (!described) {
        WrongUsage(
            "No machine is named, and FORNAX_NPU is not set; --npu takes edge-4, laptop-45, "
            "dc-400 or a file.");
    }
    return *described;
}

// Runs the command and gives its exit status, 128 and the signal if one ended it.
int RunCommand(std::vector<std::string> command) {
    std::vector<char*> arguments;
    for (std::string& argument : command) {
        arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    std::fflush(nullptr);
    // A terminal's signals go to the command, whose records are wanted all the same.
    const auto interrupt = std::signal(SIGINT, SIG_IGN), quit = std::signal(SIGQUIT, SIG_IGN);
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGINT, interrupt);
        std::signal(SIGQUIT, quit);
        ::execvp(arguments[0], arguments.data());
        const int error = errno;
        fmt::print(stderr, "fornax: The command {} cannot be run: {}.\n", command[0],
                   std::strerror(error));
        ::_exit(error == ENOENT ? kExitExecNotFound : kExitExecNotRunnable);
    }
    int status = 0;
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    std::signal(SIGINT, interrupt);
    std::signal(SIGQUIT, quit);
    if (child < 0) {
        ExitWithError({ErrorCode::kIo, fmt::format("No process can be made for the command {}: {}.",
                                                   command[0], ErrnoMessage(errno))});
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The records that a run of the command leaves in the file.
std::vector<npu::Record> RecordsOfCommand(std::vector<std::string> command,
                                          const std::string& path,
                                          int& exit_code) {
    SelectDriver(ValueOrExit(FindManifest(), kExitExecFailed));
    // The command may change its directory.
    const std::string absolute = std::filesystem::absolute(path).string();
    std::error_code ignored;
    std::filesystem::remove(absolute, ignored);  // of another run
    setenv("FORNAX_NPU_RECORDS", absolute.c_str(), 1);
    const std::string name = command.front();
    exit_code = RunCommand(std::move(command));
    if (exit_code != 0) {
        fmt::print(stderr, "fornax: The command {} ended with {}.\n", name, exit_code);
    }
    Result<std::vector<npu::Record>> records = npu::ReadRecordFile(absolute);
    if (!records.ok() && records.error().code == ErrorCode::kNotFound) {
        ExitWithError({ErrorCode::kNotFound,
                       fmt::format("The command {} left no cost records: nothing of it ran on the "
                                   "Fornax device, or its driver does not write them.",
                                   name)},
                      exit_code != 0 ? exit_code : kExitFailure);
    }
    return ValueOrExit(std::move(records), exit_code != 0 ? exit_code : kExitFailure);
}

void WriteOutputs(const Options& options, const Profile& profile) {
    const uint32_t threads = std::max(1U, std::thread::hardware_concurrency());
    ProgressLine line;
    line.Show("replaying what if", 0, 0);
    const std::vector<WhatIf> changes =
        ReplayChanges(profile.description, profile.records, threads);
    const auto write = [&](const char* name, const std::string& text) {
        line.Show(fmt::format("writing {}", name), 0, 0);
        ExitIfError(WriteOutputFile(options.directory + "/" + name, text));
    };
    write("profile.txt", ProfileText(profile, SIZE_MAX));
    write("profile.json",
          ProfileToJson(profile).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) +
              "\n");
    write("trace.perfetto-trace", TraceOf(profile));
    write("profile.html", PageOf(profile, changes));
}

void Run(const Options& options, const std::vector<std::string>& command) {
    if (options.records.empty() == command.empty()) {
        WrongUsage("profile needs either a file of cost records or a command behind `--`.");
    }
    // Before the work, so that what is wrong costs nothing.
    npu::Description description = MachineOf(options.machine);
    if (!options.directory.empty()) {
        ExitIfError(CreateDirectories(options.directory, 0777));
    }
    int exit_code = 0;
    std::vector<npu::Record> records;
    if (command.empty()) {
        records = ValueOrExit(npu::ReadRecordFile(options.records));
    } else if (options.directory.empty()) {
        const ScratchDirectory scratch = ValueOrExit(ScratchDirectory::Create("profile"));
        records = RecordsOfCommand(command, scratch / "records.jsonl", exit_code);
    } else {
        records = RecordsOfCommand(command, options.directory + "/records.jsonl", exit_code);
    }
    const Profile profile = ValueOrExit(MakeProfile(std::move(description), records));
    if (options.as_json) {
        fmt::print("{}\n", ProfileToJson(profile).dump(1, ' ', false,
                                                       nlohmann::json::error_handler_t::replace));
    } else {
        fmt::print("{}", ProfileText(profile, options.top));
    }
    if (!options.directory.empty()) {
        WriteOutputs(options, profile);
        if (!options.as_json) {
            fmt::print("written    {}/profile.html and what is beside it\n", options.directory);
        }
    }
    if (exit_code != 0) {
        ExitWithCode(exit_code);
    }
}

}  // namespace

void AddProfileCommand(CLI::App& app, std::vector<std::string> command) {
    CLI::App* profile =
        app.add_subcommand("profile", "Model where the time of cost records goes on an NPU");
    profile->footer(kExamples);
    auto options = std::make_shared<Options>();
    profile->add_option("records", options->records, "A file of cost records");
    profile->add_option("--npu", options->machine, "A preset or a file (default: FORNAX_NPU)");
    profile->add_option("-o,--output-dir", options->directory,
                        "A directory for tables, a trace and a page");
    profile->add_option("--top", options->top, "How many kernels are printed")
        ->capture_default_str();
    profile->add_flag("--json", options->as_json, "Print the tables for programs");
    profile->callback([options, command = std::move(command)] { Run(*options, command); });
}

}  // namespace fornax::tool
