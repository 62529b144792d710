// Starts a child process and waits for it, with a time limit.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace fornax::bench {

struct ProcessOptions {
    std::vector<std::string> arguments;              // the first is the program's path
    std::map<std::string, std::string> environment;  // set on top of ours; an empty value unsets
    std::filesystem::path log;                       // gets the child's standard output and error
    double timeout_seconds = 60;
};

// Returns the exit code. A child that a signal ended, or that had to be killed because its time was
// up, is an Error that says so.
Result<int> RunProcess(const ProcessOptions& options);

}  // namespace fornax::bench
