// Reads FORNAX_COMPAT. What the modes change is where it belongs: queue_family.cpp,
// supported_api.cpp, physical_device_limits.cpp, physical_device_properties.cpp, format.cpp,
// image.cpp, absent.cpp and device.cpp.
#include "driver/compat.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/environment.h"
#include "base/log.h"

namespace fornax::driver {
namespace {

std::string_view Trim(std::string_view text) {
    constexpr std::string_view kSpaces = " \t";
    const size_t first = text.find_first_not_of(kSpaces);
    return first == std::string_view::npos
               ? std::string_view()
               : text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
}

}  // namespace

ParsedCompatModes ParseCompatModes(std::string_view text) {
    ParsedCompatModes parsed;
    while (!text.empty()) {
        const size_t comma = std::min(text.find(','), text.size());
        const std::string_view word = Trim(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
        if (word == "graphics") {
            parsed.modes.graphics = true;
        } else if (word == "conformance") {
            parsed.modes.conformance = true;
        } else if (word == "bounds") {
            parsed.modes.bounds = true;
        } else if (!word.empty()) {
            parsed.unknown_words.emplace_back(word);
        }
    }
    return parsed;
}

const CompatModes& GetCompatModes() {
    static const CompatModes modes = [] {
        const ParsedCompatModes parsed =
            ParseCompatModes(EnvironmentText("FORNAX_COMPAT").value_or(std::string()));
        if (!parsed.unknown_words.empty()) {
            LogWarning(
                "FORNAX_COMPAT has the unknown word{} '{}', which changes nothing; the words are "
                "graphics, conformance and bounds, separated by commas.",
                parsed.unknown_words.size() > 1 ? "s" : "",
                fmt::join(parsed.unknown_words, "', '"));
        }
        return parsed.modes;
    }();
    return modes;
}

}  // namespace fornax::driver
