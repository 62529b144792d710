// Messages to the user: one line each on standard error, by level.
//
// FORNAX_LOG_LEVEL is off, error, warning (the default), info or debug. It is read at the first
// message. All functions may be called from any thread; a line is written whole. Nothing is
// constructed before the first call, as the driver may be loaded by a program that never uses it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace fornax {

enum class LogLevel : uint8_t {
    kOff,      // as a threshold only: nothing is written
    kError,    // something the caller asked for failed
    kWarning,  // it works, but not as the user would expect
    kInfo,     // what happened, for a user who asks
    kDebug,    // for us
};

// The threshold in effect. A message of a level above it costs one atomic load.
LogLevel GetLogLevel();
void SetLogLevel(LogLevel level);
inline bool LogEnabled(LogLevel level) {
    return level <= GetLogLevel();
}

// Parses a value of FORNAX_LOG_LEVEL; false if it is none of the names above.
bool ParseLogLevel(std::string_view name, LogLevel* level);

// Receives every message that passes the threshold instead of standard error. Null restores that.
// The sink may be called from several threads at once. Returns the previous sink.
using LogSink = void (*)(LogLevel level, std::string_view message);
LogSink SetLogSink(LogSink sink);

// Writes a formatted message if its level passes. Control characters in it are replaced: messages
// quote names out of files and applications.
void LogMessage(LogLevel level, std::string_view message);

template <typename... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
    if (LogEnabled(level)) {
        LogMessage(level, fmt::format(format, std::forward<Args>(args)...));
    }
}

template <typename... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
    Log(LogLevel::kError, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
    Log(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
// Warns the first time that the process meets the cause (any text), and informs later: one warning
// is enough for a disk that is full. Takes no lock, so that a child of fork may use it.
bool IsFirstWarningOf(std::string_view cause);

template <typename... Args>
void LogWarningOnce(std::string_view cause, fmt::format_string<Args...> format, Args&&... args) {
    const bool first = LogEnabled(LogLevel::kWarning) && IsFirstWarningOf(cause);
    Log(first ? LogLevel::kWarning : LogLevel::kInfo, format, std::forward<Args>(args)...);
}

template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
    Log(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
    Log(LogLevel::kDebug, format, std::forward<Args>(args)...);
}

}  // namespace fornax
