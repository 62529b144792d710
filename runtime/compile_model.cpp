// The compiler of libfornax: ONNX files and FX graphs through the graph compiler, and plan files.
#include "runtime/compile_model.h"

#include <fmt/format.h>

#include "base/file.h"
#include "compiler/frontends/onnx/importer.h"
#include "compiler/frontends/onnx/model_inputs.h"
#include "compiler/frontends/torch/importer.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/graph_hash.h"
#include "compiler/graph/host/host_functions.h"
#include "compiler/graph/ir/text.h"
#include "runtime/model_cache.h"

namespace fornax::runtime {
namespace {

Result<onnx_frontend::ImportedModel> Import(const CompileRequest& request) {
    ReportStage(request, "importing");
    onnx_frontend::ImportOptions options;
    options.dims = request.dims;
    options.input_shapes = request.input_shapes;
    options.input_values = request.input_values;
    options.strict = request.strict;
    return request.file.path.empty()
               ? onnx_frontend::ImportModel(*request.file.bytes, request.file.name(), "", options)
               : onnx_frontend::ImportModelFile(request.file.path, options);
}

// All of the file, mapped or as it is in memory.
Result<graph::Bytes> BytesOf(const ModelFile& file) {
    if (file.path.empty()) {
        const std::span bytes(reinterpret_cast<const uint8_t*>(file.bytes->data()),
                              file.bytes->size());
        return graph::Bytes(bytes, file.bytes);
    }
    FORNAX_ASSIGN_OR_RETURN(const auto mapped, MappedFile::Open(file.path));
    const std::span bytes(reinterpret_cast<const uint8_t*>(mapped->bytes().data()),
                          mapped->bytes().size());
    return graph::Bytes(bytes, mapped);
}

// The FX graph that the file is, or nothing if it is another model.
Result<std::optional<torch_frontend::GraphFile>> OpenTorchGraph(const ModelFile& file) {
    FORNAX_ASSIGN_OR_RETURN(const graph::Bytes bytes, BytesOf(file));
    if (!torch_frontend::LooksLikeGraphFile(std::as_bytes(*bytes))) {
        if (!file.pieces.empty()) {
            return Error{ErrorCode::kInvalidArgument,
                         fmt::format("{} is in pieces, and no FX graph.", file.name())};
        }
        return std::optional<torch_frontend::GraphFile>();
    }
    FORNAX_ASSIGN_OR_RETURN(
        torch_frontend::GraphFile graph,
        torch_frontend::ReadGraphFile(bytes, file.name(), file.directory(), file.pieces));
    return std::optional(std::move(graph));
}

Result<onnx_frontend::ImportedModel> ImportTorch(const torch_frontend::GraphFile& file,
                                                 const CompileRequest& request) {
    ReportStage(request, "importing");
    torch_frontend::ImportOptions options;
    options.dims = request.dims;
    options.input_shapes.insert(request.input_shapes.begin(), request.input_shapes.end());
    FORNAX_ASSIGN_OR_RETURN(torch_frontend::ImportedGraph imported,
                            torch_frontend::ImportGraph(file, request.file.name(), options));
    onnx_frontend::ImportedModel model;
    model.graph = std::move(imported.graph);
    model.external_files = std::move(imported.external_files);
    return model;
}

}  // namespace

Result<CompiledModel> CompileModel(CompileRequest request) {
    FORNAX_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(request.file));
    if (is_plan) {
        return ReadPlanModel(request);
    }
    FORNAX_ASSIGN_OR_RETURN(const std::optional<torch_frontend::GraphFile> torch,
                            OpenTorchGraph(request.file));
    if (torch) {
        FORNAX_ASSIGN_OR_RETURN(onnx_frontend::ImportedModel model, ImportTorch(*torch, request));
        return CompileImported(std::move(model), request);
    }
    FORNAX_ASSIGN_OR_RETURN(onnx_frontend::ImportedModel model, Import(request));
    request.file.bytes.reset();
    return CompileImported(std::move(model), request);
}

Result<CompiledModel> CompileImported(onnx_frontend::ImportedModel model,
                                      const CompileRequest& request) {
    ReportStage(request, "compiling");
    const Status valid = graph::Verify(model.graph);
    if (!valid.ok()) {
        return Error{ErrorCode::kInternal, fmt::format("The graph of {} is not valid: {}",
                                                       request.file.name(), valid.error().message)};
    }
    std::vector<graph::TensorType> inputs, outputs;
    for (const graph::ValueId input : model.graph.inputs()) {
        inputs.push_back(model.graph.TypeOf(input));
    }
    for (const graph::Output& output : model.graph.outputs()) {
        outputs.push_back(model.graph.TypeOf(output.value));
    }
    graph::CompileOptions options;
    options.strict = request.strict;
    FORNAX_RETURN_IF_ERROR(
        CheckSizeNames(request.file.name(), request.dynamic_sizes.names, inputs));
    options.dynamic_sizes =
        request.dynamic_sizes.all ? OpenSizes(inputs) : request.dynamic_sizes.names;
    options.precision = request.precision;
    options.bfloat16_products = request.bfloat16_products;
    options.serial = request.serial;
    CompiledModel compiled;
    if (request.with_boundaries) {
        graph::TextOptions text;
        text.elide_constants = true;
        compiled.graph_text = graph::ToText(model.graph, text);
    }
    FORNAX_ASSIGN_OR_RETURN(
        compiled.plan, graph::Compile(std::move(model.graph), options,
                                      request.with_boundaries ? &compiled.boundaries : nullptr));
    compiled.plan.model_inputs = std::move(inputs);
    compiled.plan.model_outputs = std::move(outputs);
    for (size_t i = 0; i < compiled.plan.inputs.size(); ++i) {
        if (std::ranges::count(model.fixed_inputs, compiled.plan.inputs[i].name) != 0) {
            compiled.plan.fixed_inputs.push_back(static_cast<uint32_t>(i));
        }
    }
    compiled.host_functions = &graph::StandardHostFunctions();
    compiled.external_files = std::move(model.external_files);
    return compiled;
}

Result<std::optional<ModelDescription>> DescribeModel(const ModelFile& file) {
    FORNAX_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(file));
    if (is_plan) {
        return std::optional<ModelDescription>();
    }
    ModelDescription description;
    FORNAX_ASSIGN_OR_RETURN(const std::optional<torch_frontend::GraphFile> torch,
                            OpenTorchGraph(file));
    if (torch) {
        FORNAX_ASSIGN_OR_RETURN(torch_frontend::GraphPorts ports,
                                torch_frontend::ReadGraphPorts(*torch, file.name()));
        description.names = std::move(ports.names);
        description.types = std::move(ports.types);
        description.output_count = ports.output_count;
        return std::optional(std::move(description));
    }
    FORNAX_ASSIGN_OR_RETURN(const graph::Bytes bytes, BytesOf(file));
    FORNAX_ASSIGN_OR_RETURN(const onnx_frontend::ModelPorts ports,
                            onnx_frontend::ReadModelPorts(std::as_bytes(*bytes), file.name()));
    description.output_count = ports.output_count;
    bool is_whole = ports.has_only_tensors;
    for (const onnx_frontend::ModelInput& input : ports.inputs) {
        is_whole &= input.type.has_value() && input.has_shape;
        description.names.push_back(input.name);
        description.types.push_back(input.type.value_or(graph::TensorType()));
    }
    return is_whole ? std::optional(std::move(description)) : std::nullopt;
}

Result<std::vector<UnsupportedNode>> CheckTorchGraph(const ModelFile& file) {
    const std::string name = "graph";
    FORNAX_ASSIGN_OR_RETURN(const graph::Bytes bytes, BytesOf(file));
    FORNAX_ASSIGN_OR_RETURN(const torch_frontend::GraphFile graph,
                            torch_frontend::ReadGraphFile(bytes, name, "", file.pieces));
    std::vector<std::string> reasons;
    FORNAX_ASSIGN_OR_RETURN(const std::vector<uint32_t> nodes,
                            torch_frontend::UnsupportedNodes(graph, name, &reasons));
    std::vector<UnsupportedNode> unsupported;
    for (size_t i = 0; i < nodes.size(); ++i) {
        unsupported.push_back({nodes[i], std::move(reasons[i])});
    }
    return unsupported;
}

ModelCompiler LinkedCompiler() {
    return {DescribeModel, CompileModel, graph::CompilerDigest(), &graph::StandardHostFunctions()};
}

}  // namespace fornax::runtime
