// The compiler of libfornax: ONNX files through the graph compiler.
#include "runtime/compile_model.h"

#include <fmt/format.h>

#include "compiler/frontends/onnx/importer.h"
#include "compiler/graph/compile.h"
#include "compiler/graph/host/host_functions.h"

namespace fornax::runtime {

Result<CompiledModel> CompileModel(CompileRequest request) {
    onnx_frontend::ImportOptions import_options;
    import_options.dims = request.dims;
    import_options.input_shapes = request.input_shapes;
    import_options.input_values = request.input_values;
    import_options.strict = request.strict;
    FORNAX_ASSIGN_OR_RETURN(onnx_frontend::ImportedModel model,
                            onnx_frontend::ImportModel(*request.bytes, request.name,
                                                       request.directory, import_options));
    request.bytes.reset();
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
    options.precision = request.precision;
    FORNAX_ASSIGN_OR_RETURN(compiled.plan, graph::Compile(std::move(model.graph), options));
    compiled.fixed_inputs = std::move(model.fixed_inputs);
    compiled.host_functions = &graph::StandardHostFunctions();
    return compiled;
}

}  // namespace fornax::runtime
