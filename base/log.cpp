// The one place that writes to standard error on behalf of the library.
#include "base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <string>

#include "base/environment.h"
#include "base/hash.h"

namespace fornax {
namespace {

constexpr LogLevel kDefaultLevel = LogLevel::kWarning;
constexpr int kLevelUnread = -1;

constinit std::atomic<int> g_level{kLevelUnread};
constinit std::atomic<LogSink> g_sink{nullptr};

// Hashes of the causes that were warned about. When all are taken, further causes only inform.
constexpr size_t kMaxCauses = 256;
constinit std::array<std::atomic<uint64_t>, kMaxCauses> g_causes{};

std::string_view LevelName(LogLevel level) {
    switch (level) {
        case LogLevel::kOff:
            break;
        case LogLevel::kError:
            return "error";
        case LogLevel::kWarning:
            return "warning";
        case LogLevel::kInfo:
            return "info";
        case LogLevel::kDebug:
            return "debug";
    }
    return "off";
}

// One write call a line: the kernel keeps lines of concurrent threads apart, and nothing is
// buffered when the process dies.
void WriteLine(const std::string& line) {
    size_t written = 0;
    while (written < line.size()) {
        const ssize_t count = ::write(STDERR_FILENO, line.data() + written, line.size() - written);
        if (count <= 0) {
            return;  // there is nowhere to report this to
        }
        written += static_cast<size_t>(count);
    }
}

}  // namespace

bool ParseLogLevel(std::string_view name, LogLevel* level) {
    for (LogLevel candidate : {LogLevel::kOff, LogLevel::kError, LogLevel::kWarning,
                               LogLevel::kInfo, LogLevel::kDebug}) {
        if (name == LevelName(candidate)) {
            *level = candidate;
            return true;
        }
    }
    return false;
}

LogLevel GetLogLevel() {
    const int current = g_level.load(std::memory_order_relaxed);
    if (current != kLevelUnread) {
        return static_cast<LogLevel>(current);
    }

    LogLevel level = kDefaultLevel;
    const std::optional<std::string> text = EnvironmentText("FORNAX_LOG_LEVEL");
    const bool known = !text || ParseLogLevel(*text, &level);
    int expected = kLevelUnread;
    const bool first = g_level.compare_exchange_strong(expected, static_cast<int>(level));
    if (!known && first) {
        LogWarning("FORNAX_LOG_LEVEL is '{}', which is not off, error, warning, info or debug.",
                   *text);
    }
    return first ? level : static_cast<LogLevel>(expected);
}

void SetLogLevel(LogLevel level) {
    g_level.store(static_cast<int>(level));
}

bool IsFirstWarningOf(std::string_view cause) {
    const uint64_t hash = HashBytes(std::as_bytes(std::span(cause))).low | 1;  // 0: not taken
    for (std::atomic<uint64_t>& taken : g_causes) {
        uint64_t other = 0;
        if (taken.compare_exchange_strong(other, hash)) {
            return true;
        }
        if (other == hash) {
            return false;
        }
    }
    return false;
}

LogSink SetLogSink(LogSink sink) {
    return g_sink.exchange(sink);
}

void LogMessage(LogLevel level, std::string_view message) {
    if (!LogEnabled(level)) {
        return;
    }
    std::string line = fmt::format("fornax: {}: {}", LevelName(level), message);
    for (char& c : line) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
            c = '?';
        }
    }
    if (LogSink sink = g_sink.load()) {
        const size_t prefix = line.size() - message.size();
        sink(level, std::string_view(line).substr(prefix));
        return;
    }
    line += '\n';
    WriteLine(line);
}

}  // namespace fornax
