// Which steps of a plan run on the host.
#include <set>

#include <fmt/format.h>

#include "compiler/graph/compile.h"

namespace fornax::graph {

Status CheckStrict(const Plan& plan) {
    std::set<std::string> reasons;
    size_t steps = 0;
    for (const PlanStep& step : plan.steps) {
        if (const auto* host = std::get_if<HostStep>(&step)) {
            reasons.insert(host->reason);
            ++steps;
        }
    }
    if (steps == 0) {
        return OkStatus();
    }
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} of {} steps of {} would run on the host: {}.", steps,
                             plan.steps.size(), plan.name, fmt::join(reasons, "; "))};
}

}  // namespace fornax::graph
