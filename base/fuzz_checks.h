// For fuzz targets: what every answer to hostile input has to be, and how a target says that one is
// not.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/printable.h"
#include "base/result.h"

namespace fornax {

// Prints what is wrong and ends the process, which libFuzzer reports with the input.
[[noreturn]] inline void FuzzFailure(std::string_view what, std::string_view detail) {
    std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
                 static_cast<int>(detail.size()), detail.data());
    std::abort();
}

// An error is a sentence that is fit for a terminal.
inline void CheckSentence(const Error& error) {
    if (!error.message.ends_with('.') || Printable(error.message) != error.message) {
        FuzzFailure("No sentence", error.message);
    }
}

}  // namespace fornax
