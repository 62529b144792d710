// The passes in order, then the schedule.
#include "compiler/graph/compile.h"

#include "compiler/graph/passes/passes.h"
#include "compiler/graph/schedule/own_kernels.h"
#include "compiler/graph/schedule/recurrence.h"
#include "compiler/graph/schedule/schedule.h"

namespace fornax::graph {

bool HasCompiler() {
    return true;
}

Result<Graph> LowerToPrimitives(Graph graph, const std::set<std::string>& dynamic_sizes) {
    const auto keep_none = [](const Graph&, const Node&) { return false; };
    FORNAX_ASSIGN_OR_RETURN(graph, SpecializeSizes(std::move(graph), dynamic_sizes));
    FORNAX_ASSIGN_OR_RETURN(graph, InlineComposites(graph, keep_none));
    FORNAX_ASSIGN_OR_RETURN(graph, Simplify(graph));
    FORNAX_ASSIGN_OR_RETURN(graph, LowerControlFlow(graph, keep_none));
    FORNAX_ASSIGN_OR_RETURN(graph, InlineComposites(graph, keep_none));
    return Simplify(graph);
}

Result<Plan> Compile(Graph graph,
                     const CompileOptions& options,
                     std::vector<Boundary>* boundaries) {
    FORNAX_ASSIGN_OR_RETURN(graph, SpecializeSizes(std::move(graph), options.dynamic_sizes));
    if (!options.serial) {
        FORNAX_ASSIGN_OR_RETURN(graph, MultiplyLess(graph));
        FORNAX_ASSIGN_OR_RETURN(graph, TransformFast(graph));
    }
    const auto has_template = [&](const Graph& of, const Node& node) {
        return !options.serial && IsOfTemplate(of, node);
    };
    FORNAX_ASSIGN_OR_RETURN(graph, InlineComposites(graph, has_template));
    FORNAX_ASSIGN_OR_RETURN(graph, Simplify(graph));
    FORNAX_ASSIGN_OR_RETURN(graph, LowerControlFlow(graph, IsRecurrence));
    FORNAX_ASSIGN_OR_RETURN(graph, InlineComposites(graph, has_template));
    FORNAX_ASSIGN_OR_RETURN(graph, ForwardState(graph));
    FORNAX_ASSIGN_OR_RETURN(graph, SinkPermutations(graph));
    FORNAX_ASSIGN_OR_RETURN(graph, Simplify(graph));
    FORNAX_ASSIGN_OR_RETURN(graph, ChooseLayouts(graph));
    FORNAX_ASSIGN_OR_RETURN(graph, Simplify(graph));
    if (!options.serial) {
        FORNAX_ASSIGN_OR_RETURN(graph, OrderBytes(graph));
    }
    FORNAX_ASSIGN_OR_RETURN(graph, JoinProducts(graph));
    if (options.precision == Precision::kMedium) {
        FORNAX_ASSIGN_OR_RETURN(graph, NarrowWeights(graph));
    }
    if (options.bfloat16_products) {
        FORNAX_ASSIGN_OR_RETURN(graph,
                                NarrowProducts(graph, options.precision == Precision::kMedium));
    }
    if (!options.serial) {
        FORNAX_ASSIGN_OR_RETURN(graph, PackWeights(std::move(graph)));
    }
    FORNAX_RETURN_IF_ERROR(Verify(graph));
    FORNAX_ASSIGN_OR_RETURN(Plan plan, Schedule(graph, boundaries, options.serial));
    if (options.strict) {
        FORNAX_RETURN_IF_ERROR(CheckStrict(plan));
    }
    return plan;
}

}  // namespace fornax::graph
