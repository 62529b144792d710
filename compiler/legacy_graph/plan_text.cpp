// ToText: the plan in words and columns, deterministic.
#include <fmt/format.h>

#include "compiler/legacy_graph/plan.h"

namespace fornax::legacy_graph {
namespace {

void AppendPort(std::string& out, const char* kind, const PlanPort& port) {
    fmt::format_to(std::back_inserter(out), "{} {}: {} in tensor {}\n", kind, port.name,
                   port.type.ToString(), port.tensor);
}

}  // namespace

std::string ToText(const Plan& plan) {
    std::string out;
    auto to = std::back_inserter(out);
    fmt::format_to(to, "plan {} of graph {}\n", plan.name, plan.graph_hash);
    for (const PlanPort& input : plan.inputs) {
        AppendPort(out, "input", input);
    }
    for (const PlanPort& output : plan.outputs) {
        AppendPort(out, "output", output);
    }
    fmt::format_to(to, "region {} bytes: weights {}, arena {} (peak live {}, unshared {})\n",
                   plan.region_bytes(), plan.weights.size(), plan.arena_bytes, plan.peak_live_bytes,
                   plan.unshared_bytes());
    for (size_t i = 0; i < plan.tensors.size(); ++i) {
        const PlanTensor& tensor = plan.tensors[i];
        fmt::format_to(to, "tensor {}: {} {} {} at {}, {} bytes, steps {}..{}\n", i,
                       Name(tensor.kind), tensor.name, tensor.type.ToString(), tensor.offset_bytes,
                       tensor.type.size_bytes(), tensor.first_step, tensor.last_step);
    }
    for (size_t i = 0; i < plan.sets.size(); ++i) {
        fmt::format_to(to, "set {}: tensors {}\n", i, fmt::join(plan.sets[i].tensors, ", "));
    }
    for (size_t i = 0; i < plan.dispatches.size(); ++i) {
        const PlanDispatch& dispatch = plan.dispatches[i];
        if (dispatch.barrier_before) {
            out += "barrier\n";
        }
        fmt::format_to(to, "dispatch {}: {} for {}, grid {}, set {}\n", i,
                       Kernel(dispatch.kernel).name, dispatch.name, fmt::join(dispatch.grid, "x"),
                       dispatch.set);
        fmt::format_to(to, "    constants {}\n", fmt::join(dispatch.parameters, " "));
    }
    return out;
}

}  // namespace fornax::legacy_graph
