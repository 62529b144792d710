// Starts the compiler, waits for it, and reads what it wrote as untrusted bytes.
#include "plugins/ggml/compile_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/file.h"
#include "base/scratch_directory.h"
#include "compiler/graph/plan/plan_file.h"

namespace fornax::ggml_plugin {
namespace {

// The exit status; -1 if the program around us takes its children's statuses itself.
Result<int> Run(std::vector<std::string> command) {
    std::vector<char*> arguments;
    for (std::string& argument : command) {
        arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    // What it prints is for readers, and standard output may be somebody's data.
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    pid_t child = 0;
    const int error =
        posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        return Error{ErrorCode::kNotFound,
                     fmt::format("The compiler {} of FORNAX_COMPILER cannot be run: {}.",
                                 command[0], ErrnoMessage(error))};
    }
    int status = 0;
    pid_t waited = 0;
    do {
        waited = ::waitpid(child, &status, 0);
    } while (waited < 0 && errno == EINTR);
    if (waited < 0) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<graph::Plan> CompileInProcess(const std::string& compiler,
                                     const graph::Graph& graph,
                                     const graph::CompileOptions& options) {
    FORNAX_ASSIGN_OR_RETURN(const ScratchDirectory scratch, ScratchDirectory::Create("compile"));
    const std::string text_file = scratch / "graph", plan_file = scratch / "graph.plan";
    FORNAX_RETURN_IF_ERROR(WriteFileAtomically(text_file, graph::ToText(graph), 0600));
    // All options by name, so that a new one is not forgotten.
    const auto& [strict, dynamic_sizes, precision, bfloat16_products, serial] = options;
    if (precision != graph::Precision::kHighest || bfloat16_products || serial) {
        return Error{ErrorCode::kUnsupported,
                     "The compiler of FORNAX_COMPILER is not asked for less precise products or "
                     "plans of one processor."};
    }
    std::vector<std::string> command = {compiler, "compile", text_file, "-o", plan_file};
    if (strict) {
        command.emplace_back("--strict");
    }
    for (const std::string& name : dynamic_sizes) {
        command.insert(command.end(), {"--dynamic", name});
    }
    FORNAX_ASSIGN_OR_RETURN(const int code, Run(std::move(command)));
    if (code > 0) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The compiler {} of FORNAX_COMPILER ended with status {}.",
                                 compiler, code)};
    }
    return graph::ReadPlanFile(plan_file);
}

}  // namespace fornax::ggml_plugin
