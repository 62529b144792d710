// Tables and text files about a plan: why there are kernels of their own, which nodes they compute,
// and what each took beside the machine's limits.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/graph/schedule/boundaries.h"
#include "runtime/instance.h"
#include "tools/bench/host_limits.h"

namespace fornax::tool {

// A row for each value that lies in memory between kernels: its node, what is kept, how many bytes,
// and why.
std::string BoundaryTable(const std::vector<graph::Boundary>& boundaries,
                          const graph::Bindings& sizes);

// A line for each node of the model, in their order: "NODE<tab>KERNEL", where KERNEL is the node
// that the step with it is named after.
std::string NodeList(const std::vector<graph::Boundary>& boundaries);

// The steps that took longest, at most `top`, and the totals of each mapping of kernels: time,
// rates, and their shares of the host's limits.
std::string ProfileTable(const graph::Plan& plan,
                         const graph::Bindings& sizes,
                         const std::vector<runtime::StepTime>& times,
                         const bench::HostLimits& limits,
                         size_t top);

struct PlanReport {
    const graph::Plan& plan;
    const std::vector<graph::Boundary>& boundaries;
    const graph::Bindings& sizes;
    const graph::MemoryPlan& memory;
    std::string profile;  // "" if there is none
};

// Writes nodes.txt, boundaries.txt, plan.txt, memory.txt and profile.txt into a directory, which is
// created.
Status WritePlanReport(const std::string& directory, const PlanReport& report);

}  // namespace fornax::tool
