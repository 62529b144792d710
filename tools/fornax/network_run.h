// A network on a device: loaded, run a number of times, and what that took.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/model.h"
#include "tools/fornax/network.h"
#include "tools/fornax/network_inputs.h"

namespace fornax::tool {

struct RunOptions {
    std::string device;
    bool use_cache = true;
    bool with_profile = false;
    size_t repeat = 1;
    double warm_up_seconds = 0;  // of runs that are not counted
    runtime::ProgressFunction progress;
};

struct NetworkRun {
    std::shared_ptr<runtime::Model> model;
    std::shared_ptr<const runtime::ModelPlan> plan;
    std::vector<graph::Tensor> outputs;
    std::vector<double> milliseconds;      // of each run
    double load_ms = 0;                    // until the first run can begin
    double first_run_ms = 0;               // the first of all, warm-up included
    std::vector<runtime::StepTime> times;  // of a further run, if profiled
    graph::MemoryPlan memory;
    graph::Bindings bindings;  // the sizes of the plan's symbols

    const graph::Plan& graph_plan() const { return plan->program->plan(); }
    double median_ms() const;
    double least_ms() const;
};

// Makes the loader see the Fornax driver: alone, or, when a device is asked for by name, beside the
// others. Without a Fornax driver, or when the user has chosen drivers, the loader's list is used
// as it is.
void SelectDrivers(const std::string& device);

Result<NetworkRun> RunNetwork(const NetworkOptions& network,
                              const NetworkData& data,
                              const std::vector<NetworkInput>& inputs,
                              const std::map<std::string, int64_t>& dims,
                              const RunOptions& options);

}  // namespace fornax::tool
