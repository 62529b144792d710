#include "base/environment.h"

#include <fmt/format.h>
#include <sys/auxv.h>

#include <atomic>
#include <charconv>
#include <cstdlib>

#include "base/log.h"

namespace fornax {
namespace {

enum class Privilege : uint8_t { kAskTheSystem, kNone, kRaised };

constinit std::atomic<Privilege> g_privilege{Privilege::kAskTheSystem};
constinit std::atomic<bool> g_warned{false};

}  // namespace

bool IsPrivilegedProcess() {
    const Privilege assumed = g_privilege.load(std::memory_order_relaxed);
    return assumed == Privilege::kAskTheSystem ? ::getauxval(AT_SECURE) != 0
                                               : assumed == Privilege::kRaised;
}

std::optional<std::string> EnvironmentText(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') {
        return std::nullopt;
    }
    if (!IsPrivilegedProcess()) {
        return value;
    }
    // Marked as said before it is said: the first message reads FORNAX_LOG_LEVEL.
    if (std::string_view(name).starts_with("FORNAX_") && !g_warned.exchange(true)) {
        LogWarning(
            "{} and all other variables of Fornax are ignored, because this process has "
            "privileges that its user lacks.",
            name);
    }
    return std::nullopt;
}

bool EnvironmentFlag(const char* name) {
    const std::optional<std::string> text = EnvironmentText(name);
    return text && *text != "0";
}

Result<uint64_t> ParseNumber(const char* name, std::string_view text, const NumberLimits& limits) {
    uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || rest != end || number < limits.least || number > limits.most) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} is '{}', which is not a number from {} to {}.", name, text,
                                 limits.least, limits.most)};
    }
    return number;
}

Result<uint64_t> EnvironmentNumber(const char* name,
                                   const NumberLimits& limits,
                                   uint64_t otherwise) {
    const std::optional<std::string> text = EnvironmentText(name);
    return text ? ParseNumber(name, *text, limits) : Result<uint64_t>(otherwise);
}

PrivilegeForTesting::PrivilegeForTesting(bool privileged) {
    g_privilege = privileged ? Privilege::kRaised : Privilege::kNone;
    g_warned = false;
}

PrivilegeForTesting::~PrivilegeForTesting() {
    g_privilege = Privilege::kAskTheSystem;
    g_warned = false;
}

}  // namespace fornax
