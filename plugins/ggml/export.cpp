// A graph is imported once more for its export, without packs of weights, which are a form for our
// kernels alone: products read the weights as the file has them.
#include "plugins/ggml/export.h"

#include <algorithm>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/environment.h"
#include "base/file.h"
#include "base/log.h"
#include "compiler/frontends/ggml/importer.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/export/exported_model.h"
#include "compiler/graph/generalize/family_record.h"
#include "compiler/graph/generalize/generalize.h"
#include "compiler/graph/generalize/sizes_of_graph.h"

namespace fornax::ggml_plugin {
namespace {

bool IsAsked(std::string_view format) {
    const std::string formats =
        "," + EnvironmentText("FORNAX_GGML_EXPORT_FORMATS").value_or("plan") + ",";
    return formats.find(fmt::format(",{},", format)) != std::string::npos;
}

// Writes a graph of the capture, or that of its family, of which these sizes are open.
Status Write(graph::Graph graph,
             const std::set<std::string>& open_sizes,
             const Capture& capture,
             std::span<const ggml_frontend::ImportedGraph::Input> inputs,
             const std::string& file) {
    FORNAX_ASSIGN_OR_RETURN(const graph::Graph lowered,
                            graph::LowerToPrimitives(std::move(graph), open_sizes));
    graph::ExportOptions options;
    options.names = PortNames(capture.graph);
    for (size_t i = 0; i < inputs.size(); ++i) {
        const uint32_t storage = inputs[i].storage;
        const graph::TensorType& type = lowered.TypeOf(lowered.inputs()[i]);
        const std::optional<std::vector<int64_t>> dims = type.shape.Constants();
        if (!capture.graph.storages[storage].is_weights || capture.addresses[storage] == nullptr ||
            !dims) {
            continue;
        }
        // The graph's memory outlives the export.
        const graph::ByteSpan bytes(static_cast<const uint8_t*>(capture.addresses[storage]),
                                    capture.sizes[storage]);
        options.weights[i] = {type.element, *dims, graph::Bytes(bytes, std::make_shared<int>()),
                              nullptr};
    }
    FORNAX_ASSIGN_OR_RETURN(const graph::ExportedModel model, graph::ExportGraph(lowered, options));
    if (IsAsked("onnx")) {
        FORNAX_RETURN_IF_ERROR(graph::WriteOnnx(model, file + ".onnx"));
    }
    return IsAsked("torch") ? graph::WriteTorch(model, file + ".py") : OkStatus();
}

// Families of graphs that this process exported.
struct Family {
    graph::FamilyRecord record;
    bool is_written = false;
};

// Two members tell which sizes depend on which, if they differ in one that the others follow from.
Status WriteFamily(const graph::Graph& graph,
                   const Capture& capture,
                   std::span<const ggml_frontend::ImportedGraph::Input> inputs,
                   const std::string& directory) {
    static std::map<Hash128, Family> families;
    const std::optional<graph::FamilyMember> member = graph::SplitSizes(graph);
    if (!member) {
        return OkStatus();
    }
    Family& family = families[member->family];
    std::optional<graph::Generalization> form;
    for (const graph::FamilyRecord::Sizes& sizes : family.record.samples) {
        if (!form) {
            form = graph::Generalization::Between(graph, sizes, member->sizes);
        }
    }
    const bool is_known =
        std::ranges::find(family.record.samples, member->sizes) != family.record.samples.end() ||
        family.record.samples.empty();
    family.record.AddSample(member->sizes);
    if (family.is_written || is_known) {
        return OkStatus();
    }
    if (!form) {
        return Error{ErrorCode::kUnsupported, "Its sizes do not all follow from one."};
    }
    const std::string name = fmt::format("family_{}", member->family.ToHex());
    FORNAX_ASSIGN_OR_RETURN(graph::Graph open, form->Apply(graph, name, {}));
    FORNAX_RETURN_IF_ERROR(Write(std::move(open), form->symbols(), capture, inputs,
                                 fmt::format("{}/{}", directory, name)));
    family.is_written = true;
    return OkStatus();
}

// For one thread at a time.
Status Export(const Capture& capture, const std::string& directory, const std::string& hash) {
    ggml_frontend::Graph plain = capture.graph;
    for (ggml_frontend::Storage& storage : plain.storages) {
        storage.is_weights = false;
    }
    FORNAX_ASSIGN_OR_RETURN(ggml_frontend::ImportedGraph imported,
                            ggml_frontend::Import(plain, fmt::format("graph_{}", hash)));
    FORNAX_RETURN_IF_ERROR(graph::Verify(imported.graph));
    FORNAX_RETURN_IF_ERROR(CreateDirectories(directory, 0755));
    const Status family = WriteFamily(imported.graph, capture, imported.inputs, directory);
    if (!family.ok()) {
        LogInfo("ggml: graph {} is exported for its own sizes alone. {}", hash,
                family.error().message);
    }
    return Write(std::move(imported.graph), {}, capture, imported.inputs,
                 fmt::format("{}/graph_{}", directory, hash));
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
