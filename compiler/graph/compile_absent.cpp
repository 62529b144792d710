// Compile() of builds without the graph compiler, which play plans that were made before.
#include "compiler/graph/compile.h"

namespace fornax::graph {

bool HasCompiler() {
    return false;
}

Result<Graph> LowerToPrimitives(Graph, const std::set<std::string>&) {
    return Error{ErrorCode::kUnsupported, "This build has no graph compiler."};
}

Result<Plan> Compile(Graph, const CompileOptions&, std::vector<Boundary>*) {
    return Error{ErrorCode::kUnsupported, "This build has no graph compiler."};
}

}  // namespace fornax::graph
