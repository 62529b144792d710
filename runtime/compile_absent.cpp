// The compiler of a libfornax that was built without one: plan files alone.
#include <fmt/format.h>

#include "compiler/graph/graph_hash.h"
#include "compiler/graph/host/host_functions.h"
#include "runtime/compile_model.h"
#include "runtime/model_cache.h"

namespace fornax::runtime {
namespace {

Error NoCompiler(const ModelFile& file) {
    return {ErrorCode::kUnsupported,
            fmt::format("{} is no plan file, and this build has no graph compiler; a build with it "
                        "makes a plan file by `fornax compile MODEL -o PLAN`.",
                        file.name())};
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of the one with a compiler
Result<CompiledModel> CompileModel(CompileRequest request) {
    FORNAX_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(request.file));
    if (!is_plan) {
        return NoCompiler(request.file);
    }
    return ReadPlanModel(request);
}

Result<std::optional<ModelDescription>> DescribeModel(const ModelFile& file) {
    FORNAX_ASSIGN_OR_RETURN(const bool is_plan, IsPlanFile(file));
    if (!is_plan) {
        return NoCompiler(file);
    }
    return std::optional<ModelDescription>();
}

Result<std::vector<UnsupportedNode>> CheckTorchGraph(const ModelFile& /*file*/) {
    return Error{ErrorCode::kUnsupported, "This build has no graph compiler."};
}

ModelCompiler LinkedCompiler() {
    return {DescribeModel, CompileModel, graph::CompilerDigest(), &graph::StandardHostFunctions()};
}

}  // namespace fornax::runtime
