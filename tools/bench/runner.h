// The parent of the measurements: finds the drivers, starts a child for each measurement,
// interleaves the repetitions and gathers a report.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/bench/report.h"

namespace fornax::bench {

struct BenchOptions {
    std::filesystem::path program;  // the `fornax` executable, which is its own child
    std::optional<std::filesystem::path> fornax_manifest;
    std::string filter;                // a regular expression that names shapes; empty means all
    std::vector<std::string> drivers;  // see SelectDrivers
    // The whole run is repeated for each target and each number of threads. A target is LLVM's name
    // of a processor for Fornax's kernels (FORNAX_CPU), or "native".
    std::vector<std::string> targets = {kNativeTarget};
    std::vector<int> threads = {0};  // 0: all
    int repetitions = 5;
    bool quick = false;
    bool validate = false;
    // Called before each measurement with what comes next; may be empty.
    std::function<void(const std::string& step)> progress;
};

// One report for each target and number of threads. Fails if the options select nothing. A
// measurement that fails is part of the report.
Result<std::vector<Report>> RunBenchmarks(const BenchOptions& options);

}  // namespace fornax::bench
