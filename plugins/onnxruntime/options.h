// What a session says of the provider.
#pragma once

#include <string>

#include "base/result.h"
#include "plugins/onnxruntime/api.h"
#include "runtime/compile_model.h"

namespace fornax::onnxruntime_plugin {

struct Options {
    runtime::Precision precision = runtime::Precision::kHighest;
    std::string cache;    // a directory, "none", or "" for the user's
    bool strict = false;  // refuses models of which a part would be left to other providers
    std::string device;   // as vulkan::Instance::Choose() takes it
    // onnxruntime's own, about compiled models.
    bool writes_context = false;
    bool embeds_context = false;  // in the model, else in a file beside it
    std::string context_path;     // of the compiled model; "" for one beside the model
    std::string context_prefix;   // of the names of its nodes
};

// Those of a session; a key or value that there is not is an error that names it.
Result<Options> ReadOptions(const Api& api, const OrtSessionOptions* session);

}  // namespace fornax::onnxruntime_plugin
