// Models that are plan files, which need no compiler.
#include <fmt/format.h>

#include "compiler/graph/host/host_functions.h"
#include "compiler/graph/plan/plan_file.h"
#include "runtime/compile_model.h"

namespace fornax::runtime {

void ReportStage(const CompileRequest& request, std::string_view stage) {
    if (request.progress) {
        request.progress({stage, 0, 0});
    }
}

namespace {

Result<graph::Plan> ParsePlanFile(const ModelFile& file) {
    if (!file.path.empty()) {
        return graph::ReadPlanFile(file.path);
    }
    if (!file.pieces.empty()) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} is in pieces, and no FX graph.", file.name())};
    }
    const std::span bytes(reinterpret_cast<const uint8_t*>(file.bytes->data()), file.bytes->size());
    Result<graph::Plan> plan = graph::ParsePlan(graph::Bytes(bytes, file.bytes));
    if (!plan.ok()) {
        return Error{plan.error().code, fmt::format("{}: {}", file.name(), plan.error().message)};
    }
    return plan;
}

}  // namespace

Result<CompiledModel> ReadPlanModel(const CompileRequest& request) {
    ReportStage(request, "reading");
    CompiledModel compiled;
    FORNAX_ASSIGN_OR_RETURN(compiled.plan, ParsePlanFile(request.file));
    if (request.strict) {
        const Status usable = graph::CheckStrict(compiled.plan);
        if (!usable.ok()) {
            return Error{usable.error().code,
                         fmt::format("{}: {}", request.file.name(), usable.error().message)};
        }
    }
    std::vector<graph::TensorType> inputs;
    for (const graph::PlanPort& port : compiled.plan.inputs) {
        inputs.push_back(port.type);
    }
    FORNAX_RETURN_IF_ERROR(
        CheckSizeNames(request.file.name(), request.dynamic_sizes.names, inputs));
    compiled.host_functions = &graph::StandardHostFunctions();
    return compiled;
}

}  // namespace fornax::runtime
