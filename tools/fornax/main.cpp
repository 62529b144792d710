// The `fornax` command: parses the command line and hands over to one subcommand.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tools/fornax/command.h"

namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  fornax info                            what the Fornax device is\n"
    "  fornax exec -- vulkaninfo --summary    run a Vulkan program on the Fornax device\n"
    "  fornax bench                           measure it beside other drivers\n"
    "  fornax run models/digits.onnx          run a neural network\n"
    "\n"
    "`fornax COMMAND --help` explains a command. Exit status: 0 success, 1 failure, 2 wrong "
    "usage;\n"
    "exec ends with its command's own status, or 125 to 127 as env(1) does.";

bool HasCommand(const CLI::App& app, const std::string& name) {
    const std::vector<const CLI::App*> commands =
        app.get_subcommands([](const CLI::App*) { return true; });
    return std::any_of(commands.begin(), commands.end(),
                       [&](const CLI::App* command) { return command->check_name(name); });
}

int Run(int argc, char** argv) {
    CLI::App app(
        "Fornax: a Vulkan compute driver and a graph compiler for a neural processing unit.",
        "fornax");
    app.set_version_flag("--version", "fornax " FORNAX_VERSION);
    app.require_subcommand(1);
    app.footer(kExamples);

    std::vector<std::string> arguments(argv + 1, argv + argc);
    const std::vector<std::string> command = fornax::tool::TakeExecCommand(arguments);
    fornax::tool::AddExecCommand(app, command);
    fornax::tool::AddInfoCommand(app);
    fornax::tool::AddBenchCommand(app);
    fornax::tool::AddRunCommand(app);
    fornax::tool::AddCompileCommand(app);
    fornax::tool::AddExplainKernelCommand(app);
    fornax::tool::AddCacheCommand(app);
    fornax::tool::AddNpuCommand(app);
    fornax::tool::AddProfileCommand(app, command);
    fornax::tool::AddSweepCommand(app);
    fornax::tool::AddSoakCommand(app);

    // CLI11 would only say that a subcommand is required.
    if (!arguments.empty() && !arguments.front().starts_with("-") &&
        !HasCommand(app, arguments.front())) {
        fmt::print(stderr, "fornax: There is no command {}; `fornax --help` lists the commands.\n",
                   arguments.front());
        return fornax::tool::kExitUsage;
    }
    try {
        std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
        app.parse(std::move(arguments));
    } catch (const CLI::RuntimeError& error) {
        return error.get_exit_code();  // a subcommand failed and has said why
    } catch (const CLI::Success& help_or_version) {
        return app.exit(help_or_version);
    } catch (const CLI::ParseError& error) {
        app.exit(error);
        return fornax::tool::kExitUsage;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return Run(argc, argv);
    } catch (const std::exception& error) {  // the standard library's, such as bad_alloc
        fmt::print(stderr, "fornax: {}.\n", error.what());
        return fornax::tool::kExitFailure;
    }
}
