// The child process of a measurement: one shape on the one driver that the loader is pointed to.
//
// The parent (runner.h) starts it as `fornax bench-child`, so that a driver that crashes or hangs
// takes nothing else along, and so that every measurement begins in a fresh process.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace fornax::bench {

struct ChildOptions {
    std::string shape;  // a Shape's name; or empty, to describe the driver's device instead
    bool quick = false;
    bool verify = false;    // compare the results with the reference first
    bool validate = false;  // run under the validation layer and fail on any message
    std::filesystem::path output;
};

// Writes Google Benchmark's JSON (or the description) to `options.output`.
Status RunChild(const ChildOptions& options);

// The same, but an error becomes the output {"error": "..."}. Returns the process's exit code.
int ChildMain(const ChildOptions& options);

}  // namespace fornax::bench
