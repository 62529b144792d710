// A line for each call of the host at level debug: "[TRACE] name(arguments) = result".
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "plugins/ggml/abi.h"

namespace fornax::ggml_plugin {

inline std::string Shown(const char* text) {
    return text == nullptr ? "null" : fmt::format("\"{}\"", text);
}
inline std::string Shown(const abi::Tensor* tensor) {
    return tensor == nullptr
               ? "null"
               : fmt::format("tensor \"{}\" [{}, {}, {}, {}]", tensor->name, tensor->ne[0],
                             tensor->ne[1], tensor->ne[2], tensor->ne[3]);
}
inline std::string Shown(abi::Tensor* tensor) {
    return Shown(static_cast<const abi::Tensor*>(tensor));
}
template <typename T>
std::string Shown(T value) {
    if constexpr (std::is_pointer_v<T>) {
        return value == nullptr ? "null" : fmt::format("{}", reinterpret_cast<const void*>(value));
    } else if constexpr (std::is_enum_v<T>) {
        return fmt::format("{}", static_cast<std::underlying_type_t<T>>(value));
    } else {
        return fmt::format("{}", value);
    }
}

// The name of an entry point as a template's argument.
template <size_t kSize>
struct EntryName {
    char text[kSize] = {};
    // Not explicit: a literal is converted.
    constexpr EntryName(const char (&literal)[kSize]) { std::copy(literal, literal + kSize, text); }
};

template <EntryName kName, auto kFunction>
struct TracedCall;
template <EntryName kName,
          typename Result,
          typename... Arguments,
          Result (*kFunction)(Arguments...)>
struct TracedCall<kName, kFunction> {
    static Result Call(Arguments... arguments) {
        if (!LogEnabled(LogLevel::kDebug)) {
            return kFunction(arguments...);
        }
        const std::vector<std::string> shown = {Shown(arguments)...};
        if constexpr (std::is_void_v<Result>) {
            kFunction(arguments...);
            LogDebug("[TRACE] {}({})", kName.text, fmt::join(shown, ", "));
        } else {
            const Result result = kFunction(arguments...);
            LogDebug("[TRACE] {}({}) = {}", kName.text, fmt::join(shown, ", "), Shown(result));
            return result;
        }
    }
};
template <EntryName kName, auto kFunction>
inline constexpr auto kTraced = &TracedCall<kName, kFunction>::Call;

}  // namespace fornax::ggml_plugin
