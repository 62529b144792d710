// What users read about graphs and about operators that are refused.
#include <fstream>
#include <mutex>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/log.h"
#include "plugins/ggml/capture.h"

namespace fornax::ggml_plugin {
namespace {

std::string Described(const ggml_frontend::Tensor& tensor) {
    return fmt::format("{} {} [{}, {}, {}, {}]", tensor.name,
                       tensor.type == nullptr ? "?" : tensor.type->name, tensor.ne[0], tensor.ne[1],
                       tensor.ne[2], tensor.ne[3]);
}

}  // namespace

void LogNodes(const Capture& capture) {
    if (!LogEnabled(LogLevel::kDebug)) {
        return;
    }
    for (const uint32_t index : capture.graph.nodes) {
        const ggml_frontend::Tensor& node = capture.graph.tensors[index];
        std::string line = fmt::format("ggml: node {} = {}", Described(node), node.operation);
        const char* separator = "(";
        for (const int32_t source : node.sources) {
            line += separator;
            line +=
                source < 0 ? "none" : Described(capture.graph.tensors[static_cast<size_t>(source)]);
            separator = ", ";
        }
        LogDebug("{}{}", line, node.sources.empty() ? "" : ")");
    }
}

void ReportRefused(const std::string& reason) {
    LogDebug("ggml: not supported: {}", reason);
    const std::optional<std::string> path = EnvironmentText("FORNAX_GGML_REPORT");
    if (!path) {
        return;
    }
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    std::ofstream file(*path, std::ios::app);
    file << reason << "\n";
    if (!file.flush()) {
        LogWarningOnce(*path, "The report {} cannot be written.", *path);
    }
}

}  // namespace fornax::ggml_plugin
