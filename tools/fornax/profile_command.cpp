// `fornax profile`: cost records, of a file or of a command that is run, as tables, a trace and a
// page for a described machine.
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
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
#include "tools/replay/programs.h"
#include "tools/replay/trace.h"

namespace fornax::tool {
namespace {

constexpr const char* kExamples =
    "Records come from files, or from a command, which is any Vulkan program: it runs on the\n"
    "Fornax device, and FORNAX_NPU_RECORDS names the files that the driver writes them to, one "
    "for\n"
    "each process. Several files are programs that begin at once on one device.\n"
    "DIR gets profile.txt, profile.json, trace.perfetto-trace (for ui.perfetto.dev) and\n"
    "profile.html; of a command also records.PROCESS.jsonl.\n"
    "\n"
    "Examples:\n"
    "  fornax run model.onnx --records model.jsonl\n"
    "  fornax profile model.jsonl --npu laptop-45 -o profile\n"
    "  fornax profile one.jsonl other.jsonl --npu laptop-45\n"
    "  fornax profile --npu edge-4 -o profile -- llama-bench -m model.gguf -ngl 99\n"
    "\n"
    "Exit status: the command's own if that is not 0.";

struct Options {
    std::vector<std::string> records;
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

std::string StemOf(const std::filesystem::path& path) {
    return path.stem().string();
}

// DIRECTORY/records.PROCESS.jsonl, in the order of the processes' numbers.
std::vector<std::filesystem::path> RecordFilesIn(const std::filesystem::path& directory) {
    std::map<uint64_t, std::filesystem::path> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
        const std::string name = entry.path().filename().string();
        constexpr std::string_view kBegin = "records.", kEnd = ".jsonl";
        if (!name.starts_with(kBegin) || !name.ends_with(kEnd) ||
            name.size() <= kBegin.size() + kEnd.size()) {
            continue;
        }
        const char* begin = name.data() + kBegin.size();
        const char* end = name.data() + name.size() - kEnd.size();
        uint64_t process = 0;
        const auto [rest, code] = std::from_chars(begin, end, process);
        if (code == std::errc() && rest == end) {
            files.emplace(process, entry.path());
        }
    }
    std::vector<std::filesystem::path> found;
    for (const auto& [process, path] : files) {
        found.push_back(path);
    }
    return found;
}

Result<std::vector<Program>> ReadPrograms(std::span<const std::filesystem::path> paths) {
    std::vector<Program> programs;
    for (const std::filesystem::path& path : paths) {
        FORNAX_ASSIGN_OR_RETURN(std::vector<npu::Record> records, npu::ReadRecordFile(path));
        programs.push_back({.name = StemOf(path), .records = std::move(records)});
    }
    return programs;
}

// The records that a run of the command leaves in the directory, those of each process.
std::vector<Program> ProgramsOfCommand(std::vector<std::string> command,
                                       const std::string& directory,
                                       int& exit_code) {
    SelectDriver(ValueOrExit(FindManifest(), kExitExecFailed));
    // The command may change its directory.
    const std::filesystem::path absolute = std::filesystem::absolute(directory);
    std::error_code ignored;
    for (const std::filesystem::path& of_another_run : RecordFilesIn(absolute)) {
        std::filesystem::remove(of_another_run, ignored);
    }
    setenv("FORNAX_NPU_RECORDS", (absolute / "records.%p.jsonl").c_str(), 1);
    const std::string name = command.front();
    exit_code = RunCommand(std::move(command));
    if (exit_code != 0) {
        fmt::print(stderr, "fornax: The command {} ended with {}.\n", name, exit_code);
    }
    const int failure = exit_code != 0 ? exit_code : kExitFailure;
    const std::vector<std::filesystem::path> files = RecordFilesIn(absolute);
    if (files.empty()) {
        ExitWithError({ErrorCode::kNotFound,
                       fmt::format("The command {} left no cost records: nothing of it ran on the "
                                   "Fornax device, or its driver does not write them.",
                                   name)},
                      failure);
    }
    return ValueOrExit(ReadPrograms(files), failure);
}

std::vector<Program> ProgramsOf(const Options& options,
                                const std::vector<std::string>& command,
                                int& exit_code) {
    if (command.empty()) {
        const std::vector<std::filesystem::path> paths(options.records.begin(),
                                                       options.records.end());
        return ValueOrExit(ReadPrograms(paths));
    }
    if (!options.directory.empty()) {
        return ProgramsOfCommand(command, options.directory, exit_code);
    }
    const ScratchDirectory scratch = ValueOrExit(ScratchDirectory::Create("profile"));
    return ProgramsOfCommand(command, scratch.path(), exit_code);
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
        WrongUsage("profile needs either files of cost records or a command behind `--`.");
    }
    // Before the work, so that what is wrong costs nothing.
    npu::Description description = MachineOf(options.machine);
    if (!options.directory.empty()) {
        ExitIfError(CreateDirectories(options.directory, 0777));
    }
    int exit_code = 0;
    const std::vector<Program> programs = ProgramsOf(options, command, exit_code);
    const std::vector<npu::Record> records = ValueOrExit(Together(programs));
    Profile profile = ValueOrExit(MakeProfile(std::move(description), records));
    profile.programs = ValueOrExit(ProgramTimesOf(programs, profile));
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
    profile->add_option("records", options->records, "Files of cost records");
    profile->add_option("--npu", options->machine, "A preset or a file (default: FORNAX_NPU)");
    profile->add_option("-o,--output-dir", options->directory,
                        "A directory for tables, a trace and a page");
    profile->add_option("--top", options->top, "How many kernels are printed")
        ->capture_default_str();
    profile->add_flag("--json", options->as_json, "Print the tables for programs");
    profile->callback([options, command = std::move(command)] { Run(*options, command); });
}

}  // namespace fornax::tool
