#include "plugins/onnxruntime/options.h"

#include <fmt/format.h>
#include <onnxruntime/onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <cctype>

namespace fornax::onnxruntime_plugin {
namespace {

// onnxruntime puts this in front of the provider's own options.
std::string Prefix() {
    std::string prefix = std::string("ep.") + kProviderName + ".";
    std::ranges::transform(prefix, prefix.begin(), [](unsigned char c) { return std::tolower(c); });
    return prefix;
}

Error NoValue(const std::string& key, const std::string& value, const char* allowed) {
    return {ErrorCode::kInvalidArgument,
            fmt::format("Fornax: the option {} is {}; it is '{}'.", key, allowed, value)};
}

Status SetOption(Options& options, const std::string& key, const std::string& value) {
    if (key == "precision") {
        if (value == "highest") {
            options.precision = runtime::Precision::kHighest;
        } else if (value == "high") {
            options.precision = runtime::Precision::kHigh;
        } else if (value == "medium") {
            options.precision = runtime::Precision::kMedium;
        } else {
            return NoValue(key, value, "highest, high or medium");
        }
    } else if (key == "strict") {
        if (value != "0" && value != "1") {
            return NoValue(key, value, "0 or 1");
        }
        options.strict = value == "1";
    } else if (key == "cache") {
        options.cache = value;
    } else if (key == "device") {
        options.device = value;
    } else {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("Fornax: there is no option '{}'; there are precision, cache, "
                                 "strict and device.",
                                 key)};
    }
    return OkStatus();
}

}  // namespace

Result<Options> ReadOptions(const Api& api, const OrtSessionOptions* session) {
    OrtKeyValuePairs* raw = nullptr;
    FORNAX_ORT(api, GetSessionOptionsConfigEntries(session, &raw));
    const std::unique_ptr<OrtKeyValuePairs, void (*)(OrtKeyValuePairs*)> pairs(
        raw, api.ort->ReleaseKeyValuePairs);
    const char* const* keys = nullptr;
    const char* const* values = nullptr;
    size_t count = 0;
    api.ort->GetKeyValuePairs(pairs.get(), &keys, &values, &count);
    Options options;
    const std::string prefix = Prefix();
    for (size_t i = 0; i < count; ++i) {
        const std::string key = keys[i], value = values[i];
        if (key.starts_with(prefix)) {
            FORNAX_RETURN_IF_ERROR(SetOption(options, key.substr(prefix.size()), value));
        } else if (key == kOrtSessionOptionEpContextEnable) {
            options.writes_context = value == "1";
        } else if (key == kOrtSessionOptionEpContextEmbedMode) {
            options.embeds_context = value == "1";
        } else if (key == kOrtSessionOptionEpContextFilePath) {
            options.context_path = value;
        } else if (key == kOrtSessionOptionEpContextNodeNamePrefix) {
            options.context_prefix = value;
        }
    }
    return options;
}

}  // namespace fornax::onnxruntime_plugin
