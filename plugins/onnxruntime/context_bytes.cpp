// Reads and writes compiled partitions; nothing is believed before it is checked.
#include "plugins/onnxruntime/context_bytes.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/printable.h"
#include "compiler/frontends/onnx/tensor_proto.h"
#include "compiler/graph/plan/plan_file.h"

namespace fornax::onnxruntime_plugin {
namespace {

constexpr std::string_view kMagic = "fornax partition 1\n";

std::string ChecksumOf(std::string_view bytes) {
    return HashBytes(std::as_bytes(std::span(bytes))).ToHex();
}

}  // namespace

Error DamagedContext(const std::string& what) {
    return {ErrorCode::kDataLoss,
            fmt::format("Fornax: a compiled partition of the model {}.", Printable(what))};
}

std::string SerializeContext(const onnx::ModelProto& partition) {
    const std::string bytes = partition.SerializeAsString();
    return std::string(kMagic) + ChecksumOf(bytes) + "\n" + bytes;
}

Result<Context> ParseContext(std::string bytes) {
    if (graph::LooksLikePlan(std::as_bytes(std::span(bytes)))) {
        return Context(PlanBytes{std::make_shared<const std::string>(std::move(bytes))});
    }
    const std::string_view text = bytes;
    const size_t header = kMagic.size() + ChecksumOf("").size() + 1;
    if (!text.starts_with(kMagic) || text.size() < header || text[header - 1] != '\n') {
        return DamagedContext("is neither a plan nor nodes, or of another version of Fornax");
    }
    const std::string_view body = text.substr(header);
    if (text.substr(kMagic.size(), header - kMagic.size() - 1) != ChecksumOf(body)) {
        return DamagedContext("is damaged: its checksum is another one");
    }
    onnx::ModelProto model;
    if (body.size() > INT32_MAX ||
        !model.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
        return DamagedContext("holds no nodes");
    }
    return Context(std::move(model));
}

bool IsOpen(const onnx::GraphProto& graph) {
    return std::ranges::any_of(graph.input(), [](const onnx::ValueInfoProto& input) {
        return std::ranges::any_of(input.type().tensor_type().shape().dim(),
                                   [](const auto& dim) { return !dim.has_dim_value(); });
    });
}

std::string DigestOf(const onnx_frontend::InitializerValues& weights) {
    Hasher hasher;
    hasher.AppendListSize(weights.size());
    for (const auto& [name, weight] : weights) {
        hasher.Append(name).Append(HashBytes(std::as_bytes(*weight.data)));
    }
    return hasher.Finish().ToHex();
}

Status CheckPartition(const onnx::GraphProto& graph,
                      const onnx_frontend::InitializerValues& weights) {
    if (!IsOpen(graph)) {
        return DamagedContext("has no open sizes");
    }
    for (const onnx::TensorProto& tensor : graph.initializer()) {
        if (tensor.has_raw_data()) {
            continue;
        }
        const auto weight = weights.find(tensor.name());
        if (weight == weights.end()) {
            return DamagedContext(fmt::format(
                "needs the constant {}, which the model does not give to it", tensor.name()));
        }
        const graph::Tensor& held = weight->second;
        if (onnx_frontend::DataTypeOf(held.element) != tensor.data_type() ||
            !std::ranges::equal(held.dims, tensor.dims())) {
            return DamagedContext(fmt::format(
                "has the constant {} as of type {} and {} dimensions, the model as {}",
                tensor.name(), tensor.data_type(), tensor.dims_size(), held.type().ToString()));
        }
    }
    if (graph.doc_string() != DigestOf(weights)) {
        return DamagedContext(
            "was made with other constants than the model has; compile the model anew");
    }
    return OkStatus();
}

}  // namespace fornax::onnxruntime_plugin
