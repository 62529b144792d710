// The importer and the graph compiler, and what a plan keeps of constants that are another's.
#include "plugins/onnxruntime/partition_compiler.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace fornax::onnxruntime_plugin {
namespace {

using onnx_frontend::InitializerValues;

// A plan outlives the call that it is compiled in, and so the constants that it has as they are.
void KeepConstants(graph::Plan& plan, const InitializerValues& weights) {
    std::map<const uint8_t*, graph::Bytes> copies;
    for (graph::PlanBlock& block : plan.blocks) {
        if (block.kind != graph::BlockKind::kConstant || !block.data) {
            continue;
        }
        const graph::ByteSpan bytes = *block.data;
        const bool is_borrowed = std::ranges::any_of(weights, [&](const auto& weight) {
            const graph::ByteSpan& whole = *weight.second.data;
            return bytes.data() >= whole.data() && bytes.data() < whole.data() + whole.size();
        });
        if (is_borrowed) {
            block.data = CopyOf(bytes);
        }
    }
}

}  // namespace

graph::Bytes CopyOf(const graph::ByteSpan& bytes) {
    constexpr size_t kAlignment = 4096;
    const size_t size =
        (std::max<size_t>(bytes.size(), 1) + kAlignment - 1) / kAlignment * kAlignment;
    const std::shared_ptr<uint8_t> copy(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, size)),
                                        std::free);
    if (copy == nullptr) {
        throw std::bad_alloc();
    }
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    return {graph::ByteSpan(copy.get(), bytes.size()), copy};
}

Result<runtime::CompiledModel> CompilePartition(const onnx::ModelProto& partition,
                                                const InitializerValues& weights,
                                                const runtime::CompileRequest& request) {
    onnx_frontend::ImportOptions options;
    options.dims = request.dims;
    options.input_shapes = request.input_shapes;
    options.strict = request.strict;
    onnx::ModelProto message = partition;
    FORNAX_ASSIGN_OR_RETURN(onnx_frontend::ImportedModel imported,
                            onnx_frontend::ImportModelMessage(message, "Fornax", weights, options));
    FORNAX_ASSIGN_OR_RETURN(runtime::CompiledModel compiled,
                            runtime::CompileImported(std::move(imported), request));
    KeepConstants(compiled.plan, weights);
    return compiled;
}

}  // namespace fornax::onnxruntime_plugin
