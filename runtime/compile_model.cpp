// The compiler of libfornax: ONNX files through the graph compiler, and plan files.
#include "runtime/compile_model.h"

#include <fmt/format.h>

#include "compiler/frontends/onnx/importer.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/host/host_functions.h"
#include "compiler/graph/plan/plan_file.h"

namespace fornax::runtime {
namespace {

void Report(const CompileRequest& request, std::string_view stage) {
    if (request.progress) {
        request.progress({stage, 0, 0});
    }
}

std::span<const uint8_t> BytesOf(const std::string& file) {
    return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
}

Result<CompiledModel> ReadPlan(const CompileRequest& request) {
    Report(request, "reading");
    CompiledModel compiled;
    Result<graph::Plan> plan =
        graph::ParsePlan(graph::Bytes(BytesOf(*request.bytes), request.bytes));
    Status usable = plan.ok() ? OkStatus() : Status(plan.error());
    if (usable.ok() && request.strict) {
        usable = graph::CheckStrict(*plan);
    }
    if (!usable.ok()) {
        return Error{usable.error().code,
                     fmt::format("{}: {}", request.name, usable.error().message)};
    }
    compiled.plan = std::move(*plan);
    compiled.host_functions = &graph::StandardHostFunctions();
    return compiled;
}

}  // namespace

Result<CompiledModel> CompileModel(CompileRequest request) {
    if (graph::LooksLikePlan(std::as_bytes(std::span(*request.bytes)))) {
        return ReadPlan(request);
    }
    Report(request, "importing");
    onnx_frontend::ImportOptions import_options;
    import_options.dims = request.dims;
    import_options.input_shapes = request.input_shapes;
    import_options.input_values = request.input_values;
    import_options.strict = request.strict;
    FORNAX_ASSIGN_OR_RETURN(onnx_frontend::ImportedModel model,
                            onnx_frontend::ImportModel(*request.bytes, request.name,
                                                       request.directory, import_options));
    request.bytes.reset();
    Report(request, "compiling");
    const Status valid = graph::Verify(model.graph);
    if (!valid.ok()) {
        return Error{ErrorCode::kInternal, fmt::format("The graph of {} is not valid: {}",
                                                       request.name, valid.error().message)};
    }
    CompiledModel compiled;
    for (const graph::ValueId input : model.graph.inputs()) {
        compiled.input_types.push_back(model.graph.TypeOf(input));
    }
    for (const graph::Output& output : model.graph.outputs()) {
        compiled.output_types.push_back(model.graph.TypeOf(output.value));
    }
    graph::CompileOptions options;
    options.strict = request.strict;
    options.dynamic_sizes = request.dynamic_sizes;
    options.precision = request.precision;
    options.bfloat16_products = request.bfloat16_products;
    FORNAX_ASSIGN_OR_RETURN(
        compiled.plan, graph::Compile(std::move(model.graph), options,
                                      request.with_boundaries ? &compiled.boundaries : nullptr));
    compiled.fixed_inputs = std::move(model.fixed_inputs);
    compiled.host_functions = &graph::StandardHostFunctions();
    return compiled;
}

}  // namespace fornax::runtime
