// A graph is imported once more for its export, without packs of weights, which are a form for our
// kernels alone: products read the weights as the file has them.
#include "plugins/ggml/export.h"

#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/file.h"
#include "base/log.h"
#include "compiler/frontends/ggml/importer.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/export/exported_model.h"

namespace fornax::ggml_plugin {
namespace {

bool IsAsked(std::string_view format) {
    const std::string formats =
        "," + EnvironmentText("FORNAX_GGML_EXPORT_FORMATS").value_or("plan") + ",";
    return formats.find(fmt::format(",{},", format)) != std::string::npos;
}

Status Export(const Capture& capture, const std::string& directory, const std::string& hash) {
    ggml_frontend::Graph plain = capture.graph;
    for (ggml_frontend::Storage& storage : plain.storages) {
        storage.is_weights = false;
    }
    FORNAX_ASSIGN_OR_RETURN(ggml_frontend::ImportedGraph imported,
                            ggml_frontend::Import(plain, fmt::format("graph_{}", hash)));
    FORNAX_RETURN_IF_ERROR(graph::Verify(imported.graph));
    FORNAX_ASSIGN_OR_RETURN(const graph::Graph lowered,
                            graph::LowerToPrimitives(std::move(imported.graph)));
    graph::ExportOptions options;
    options.names = PortNames(plain);
    for (size_t i = 0; i < imported.inputs.size(); ++i) {
        const uint32_t storage = imported.inputs[i].storage;
        if (!capture.graph.storages[storage].is_weights || capture.addresses[storage] == nullptr) {
            continue;
        }
        const graph::TensorType& type = lowered.TypeOf(lowered.inputs()[i]);
        // The graph's memory outlives the export.
        const graph::ByteSpan bytes(static_cast<const uint8_t*>(capture.addresses[storage]),
                                    capture.sizes[storage]);
        options.weights[i] = {type.element, *type.shape.Constants(),
                              graph::Bytes(bytes, std::make_shared<int>()), nullptr};
    }
    FORNAX_ASSIGN_OR_RETURN(const graph::ExportedModel model, graph::ExportGraph(lowered, options));
    FORNAX_RETURN_IF_ERROR(CreateDirectories(directory, 0755));
    const std::string file = fmt::format("{}/graph_{}", directory, hash);
    if (IsAsked("onnx")) {
        FORNAX_RETURN_IF_ERROR(graph::WriteOnnx(model, file + ".onnx"));
    }
    return IsAsked("torch") ? graph::WriteTorch(model, file + ".py") : OkStatus();
}

}  // namespace

std::map<std::string, std::string> PortNames(const ggml_frontend::Graph& graph) {
    std::map<std::string, std::string> names;
    std::set<std::string> taken;
    // A tensor that is its whole storage names it, else the first view.
    for (const bool whole : {true, false}) {
        for (const ggml_frontend::Tensor& tensor : graph.tensors) {
            const ggml_frontend::Storage& storage = graph.storages[tensor.storage];
            std::string& name = names[fmt::format("m{}", tensor.storage)];
            if (!name.empty() || (whole && (tensor.offset != 0 || tensor.ne != storage.ne))) {
                continue;
            }
            // What follows in parentheses says that it is a view, and of what kind.
            const std::string wanted =
                graph::PythonIdentifier(tensor.name.substr(0, tensor.name.find(" (")));
            name = wanted;
            for (int i = 2; !taken.insert(name).second; ++i) {
                name = fmt::format("{}_{}", wanted, i);
            }
        }
    }
    return names;
}

void ExportOnce(const Capture& capture) {
    const std::optional<std::string> directory = EnvironmentText("FORNAX_GGML_EXPORT");
    if (!directory || (!IsAsked("onnx") && !IsAsked("torch"))) {
        return;
    }
    static std::mutex mutex;
    static std::set<Hash128> done;
    const Hash128 hash = HashOf(capture.graph);
    const std::lock_guard lock(mutex);
    if (!done.insert(hash).second) {
        return;
    }
    const Status status = Export(capture, *directory, hash.ToHex());
    if (!status.ok()) {
        LogWarning("ggml: graph {} is not exported. {}", hash.ToHex(), status.error().message);
    }
}

}  // namespace fornax::ggml_plugin
