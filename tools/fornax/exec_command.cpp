// `fornax exec -- COMMAND...` runs any Vulkan program on the Fornax device, `fornax ggml -- ...`
// any program of ggml.
//
// They point the Vulkan loader to the Fornax manifest and ggml to its backend by environment
// variables and become the command, so signals, exit status and standard streams are its own.
// `exec --compat WORDS` sets FORNAX_COMPAT for it.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "tools/fornax/command.h"
#include "tools/fornax/manifest.h"

namespace fornax::tool {
namespace {

constexpr const char* kExamples =
    "The command and its arguments follow, best behind `--`.\n"
    "\n"
    "Examples:\n"
    "  fornax exec -- vulkaninfo --summary\n"
    "  fornax exec -- python3 model.py --device vulkan\n"
    "  fornax exec --compat graphics -- python3 simulation.py\n"
    "  FORNAX_MANIFEST=/opt/fornax/fornax_icd.x86_64.json fornax exec -- ./app\n"
    "\n"
    "Exit status: the command's own; 125 when the Fornax driver is missing, 126 when the command\n"
    "cannot be run, 127 when there is no such command.";

constexpr const char* kCompatOption = "--compat";

constexpr const char* kGgmlExamples =
    "The command and its arguments follow, best behind `--`. It finds the device FORNAX0 beside\n"
    "the processor; ggml's Vulkan backend does not see it.\n"
    "\n"
    "Examples:\n"
    "  fornax ggml -- llama-bench -m model.gguf -ngl 99\n"
    "  fornax ggml export model.gguf -o kernels    (`fornax ggml export --help`)\n"
    "  FORNAX_LOG_LEVEL=info fornax ggml -- llama-cli -m model.gguf -p Hello\n"
    "\n"
    "Exit status: as of exec; 125 also when libggml-fornax.so is missing.";

void CheckCommand(const std::vector<std::string>& command, const char* message) {
    if (command.empty()) {
        ExitWithError({ErrorCode::kInvalidArgument, message}, kExitUsage);
    }
}

[[noreturn]] void Exec(std::vector<std::string> command, const std::string& compat) {
    CheckCommand(command, "exec needs a command, as in `fornax exec -- vulkaninfo --summary`.");
    if (!compat.empty()) {
        setenv("FORNAX_COMPAT", compat.c_str(), 1);
    }
    SelectDriver(ValueOrExit(FindManifest(), kExitExecFailed));
    BecomeCommand(std::move(command));
}

[[noreturn]] void ExecGgml(std::vector<std::string> command) {
    CheckCommand(command, "ggml needs a command, as in `fornax ggml -- llama-bench -m MODEL`.");
    SelectDriver(ValueOrExit(FindManifest(), kExitExecFailed));
    SelectGgmlBackend(ValueOrExit(FindGgmlBackend(), kExitExecFailed));
    BecomeCommand(std::move(command));
}

}  // namespace

void BecomeCommand(std::vector<std::string> command) {
    std::vector<char*> arguments;
    for (std::string& argument : command) {
        arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());

    const int exec_error = errno;
    ExitWithError(
        {exec_error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
         fmt::format("The command {} cannot be run: {}.", command[0], std::strerror(exec_error))},
        exec_error == ENOENT ? kExitExecNotFound : kExitExecNotRunnable);
}

// CLI11 would read options of the command, such as --help, as its own, even behind `--`.
std::vector<std::string> TakeExecCommand(std::vector<std::string>& arguments) {
    const std::string name = arguments.empty() ? "" : arguments.front();
    if (name != "exec" && name != "ggml" && name != "profile") {
        return {};
    }
    // Options of export and profile come before their command.
    const bool has_options =
        name == "profile" || (name == "ggml" && arguments.size() > 1 && arguments[1] == "export");
    auto first = arguments.begin() + 1;
    for (; first != arguments.end() && *first != "--"; ++first) {
        if (!has_options && (first->empty() || first->front() != '-')) {
            break;
        }
        // The one option of exec that has its value in a word of its own.
        if (*first == kCompatOption && std::next(first) != arguments.end()) {
            ++first;
        }
    }
    std::vector<std::string> command(first, arguments.end());
    arguments.erase(first, arguments.end());
    if (!command.empty() && command.front() == "--") {
        command.erase(command.begin());
    }
    return command;
}

void AddExecCommand(CLI::App& app, std::vector<std::string> command) {
    CLI::App* exec = app.add_subcommand("exec", "Run a Vulkan program on the Fornax device");
    exec->footer(kExamples);
    const auto compat = std::make_shared<std::string>();
    exec->add_option(kCompatOption, *compat,
                     "What to show to programs that refuse a device for compute, as FORNAX_COMPAT: "
                     "graphics, conformance, bounds, or several with commas between");
    exec->callback([command, compat] { Exec(command, *compat); });
    CLI::App* ggml = app.add_subcommand("ggml", "Run a program of ggml on the Fornax device");
    ggml->footer(kGgmlExamples);
    AddGgmlExportCommand(*ggml, command);
    ggml->callback([ggml, command = std::move(command)] {
        if (ggml->get_subcommands().empty()) {
            ExecGgml(command);
        }
    });
}

}  // namespace fornax::tool
