// How a subcommand leaves with an error.
#include "tools/fornax/command.h"

#include <fmt/core.h>

#include "base/printable.h"

namespace fornax::tool {

// CLI11 runs callbacks inside parse() and knows only exceptions as a way out; RuntimeError is the
// one that main passes through without printing. It never leaves the command's own translation
// units.
void ExitWithCode(int exit_code) {
    throw CLI::RuntimeError(exit_code);
}

void ExitWithError(const Error& error, int exit_code) {
    std::fflush(stdout);  // keeps the message behind the output that led to it
    fmt::print(stderr, "fornax: {}\n", Printable(error.message));
    ExitWithCode(exit_code);
}

}  // namespace fornax::tool
