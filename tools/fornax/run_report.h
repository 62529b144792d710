// What `run` prints of a network and its results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/npu/modelled.h"
#include "tools/bench/host_limits.h"
#include "tools/fornax/network_run.h"

namespace fornax::tool {

// Device, plan and kernels, a line each.
std::string PlanSummary(const NetworkOptions& network, const NetworkRun& run);

// A line for each step on the host with its reason; "" if there is none.
std::string HostStepList(const graph::Plan& plan);

// A line for each input and output: its name, type and where it is from, or which numbers it has.
std::string PortList(const NetworkData& data, const NetworkRun& run);

// "12.30 ms, the median of 20 runs; the least 12.01 ms".
std::string TimeSummary(const NetworkRun& run);

// The same and the arena for programs, as JSON.
// With the host's limits if they were measured, and the described machine's times if there is one.
std::string RunToJson(const NetworkOptions& network,
                      const NetworkRun& run,
                      const std::optional<bench::HostLimits>& limits,
                      const std::optional<runtime::Modelled>& modelled);

// The arena beside its lower bound, weights, inputs and outputs.
std::string MemorySummary(const graph::Plan& plan, const graph::MemoryPlan& memory);

}  // namespace fornax::tool
