// What the subcommands of `fornax` share: how they are added, how they fail, and their exit codes.
//
// Each subcommand lives in a file of its own, `NAME_command.cpp`, which defines AddNameCommand. The
// function adds one CLI11 subcommand whose callback does the work. A callback that fails calls
// ExitWithError (or ExitIfError); main turns that into the process's exit code.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace fornax::tool {

// Exit codes. exec follows env(1): everything that is not the command's own code is 125 to 127.
constexpr int kExitFailure = 1;            // the work failed; one sentence on stderr says why
constexpr int kExitUsage = 2;              // the command line is wrong
constexpr int kExitExecFailed = 125;       // exec: the Fornax driver is missing
constexpr int kExitExecNotRunnable = 126;  // exec: the command exists but cannot be run
constexpr int kExitExecNotFound = 127;     // exec: there is no such command

// Prints `fornax: MESSAGE` on stderr and leaves the callback; the process ends with `exit_code`.
[[noreturn]] void ExitWithError(const Error& error, int exit_code = kExitFailure);

// Leaves the callback with `exit_code`, printing nothing.
[[noreturn]] void ExitWithCode(int exit_code);

inline void ExitIfError(const Status& status, int exit_code = kExitFailure) {
    if (!status.ok()) {
        ExitWithError(status.error(), exit_code);
    }
}

// Returns the value of `result`, or leaves the callback as ExitWithError does.
template <typename T>
T ValueOrExit(Result<T> result, int exit_code = kExitFailure) {
    if (!result.ok()) {
        ExitWithError(result.error(), exit_code);
    }
    return std::move(result).value();
}

// Cuts the command that exec, ggml or profile shall run, from the first word that is no option of
// it (not of profile) or from behind `--`, off the process's arguments. Leaves other subcommands'
// arguments alone and returns nothing then.
std::vector<std::string> TakeExecCommand(std::vector<std::string>& arguments);

void AddExecCommand(CLI::App& app, std::vector<std::string> command);
void AddGgmlExportCommand(CLI::App& ggml, std::vector<std::string> command);
// This process becomes the command, or fails as env(1) does.
[[noreturn]] void BecomeCommand(std::vector<std::string> command);

void AddBenchCommand(CLI::App& app);
// The command becomes a Python module of the source tree, with `--fornax` and its own arguments.
void AddModuleCallback(CLI::App& app, std::vector<std::string> module);
void AddCacheCommand(CLI::App& app);
void AddCompileCommand(CLI::App& app);
void AddExplainKernelCommand(CLI::App& app);
void AddInfoCommand(CLI::App& app);
void AddNpuCommand(CLI::App& app);
void AddProfileCommand(CLI::App& app, std::vector<std::string> command);
void AddRunCommand(CLI::App& app);
void AddSoakCommand(CLI::App& app);
void AddSweepCommand(CLI::App& app);

}  // namespace fornax::tool
