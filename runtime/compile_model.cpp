// The compiler of libfornax: ONNX files through the graph compiler, and plan files.
#include "runtime/compile_model.h"

#include <fmt/format.h>

#include "base/file.h"
#include "compiler/frontends/onnx/importer.h"
#include "compiler/frontends/onnx/model_inputs.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/graph_hash.h"
#include "compiler/graph/host/host_functions.h"
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

}  // namespace

Result<CompiledModel> CompileModel(CompileRequest request) {
    FORNAX_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(request.file));
    if (is_plan) {
        return ReadPlanModel(request);
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
    CompiledModel compiled;
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
    std::shared_ptr<const MappedFile> mapped;
    std::span<const std::byte> bytes;
    if (file.path.empty()) {
        bytes = std::as_bytes(std::span(*file.bytes));
    } else {
        FORNAX_ASSIGN_OR_RETURN(mapped, MappedFile::Open(file.path));
        bytes = mapped->bytes();
    }
    FORNAX_ASSIGN_OR_RETURN(const onnx_frontend::ModelPorts ports,
                            onnx_frontend::ReadModelPorts(bytes, file.name()));
    ModelDescription description;
    description.output_count = ports.output_count;
    bool is_whole = ports.has_only_tensors;
    for (const onnx_frontend::ModelInput& input : ports.inputs) {
        is_whole &= input.type.has_value() && input.has_shape;
        description.names.push_back(input.name);
        description.types.push_back(input.type.value_or(graph::TensorType()));
    }
    return is_whole ? std::optional(std::move(description)) : std::nullopt;
}

ModelCompiler LinkedCompiler() {
    return {DescribeModel, CompileModel, graph::CompilerDigest(), &graph::StandardHostFunctions()};
}

}  // namespace fornax::runtime
