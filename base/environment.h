// The one place that reads environment variables: FORNAX_*, and the system's that name directories.
//
// A process may run with privileges that its user lacks: set-user-ID and set-group-ID programs,
// and files with capabilities. The kernel marks it (AT_SECURE in getauxval(3)). That user must not
// steer it, so every variable is unset there; the first variable of Fornax that would have counted
// costs a warning. tests/lint/rules.py keeps the libraries' other files from reading the
// environment.
//
// An empty variable counts as unset. As with getenv, no other thread may change the environment
// meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fornax {

// Whether the process has privileges that its user lacks. It stays so until the next execve.
bool IsPrivilegedProcess();

// The variable's value.
std::optional<std::string> EnvironmentText(const char* name);

// Whether the variable is set to anything but "0".
bool EnvironmentFlag(const char* name);

struct NumberLimits {
    uint64_t least = 0;
    uint64_t most = UINT64_MAX;
};

// The decimal number in the variable, or `otherwise`, which need not be within the limits, where it
// is unset. kInvalidArgument for what is no number within the limits.
Result<uint64_t> EnvironmentNumber(const char* name,
                                   const NumberLimits& limits,
                                   uint64_t otherwise);

// The same for a text that the variable `name` had.
Result<uint64_t> ParseNumber(const char* name, std::string_view text, const NumberLimits& limits);

// While it lives, the process counts as privileged or as not, and the warning is due again. For
// tests.
class PrivilegeForTesting {
  public:
    explicit PrivilegeForTesting(bool privileged);
    ~PrivilegeForTesting();
    PrivilegeForTesting(const PrivilegeForTesting&) = delete;
    PrivilegeForTesting& operator=(const PrivilegeForTesting&) = delete;
};

}  // namespace fornax
