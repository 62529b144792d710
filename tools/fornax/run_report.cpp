// Lines of text about plans, tensors and times.
#include "tools/fornax/run_report.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "tools/fornax/text_table.h"

namespace fornax::tool {
namespace {

using graph::Tensor;

// "-1.5 to 2.25, mean 0.1", of the finite numbers; others are counted.
std::string DescribeNumbers(const Tensor& tensor) {
    if (tensor.element == graph::ElementType::kString) {
        return tensor.strings->empty()
                   ? ""
                   : fmt::format("the first is {}", Printable(tensor.strings->front()));
    }
    double least = INFINITY, greatest = -INFINITY, sum = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < tensor.count(); ++i) {
        const double value = tensor.At(i).ToDouble(tensor.element);
        if (std::isfinite(value)) {
            least = std::min(least, value);
            greatest = std::max(greatest, value);
            sum += value;
            ++finite;
        }
    }
    std::string text;
    if (finite != 0) {
        text = fmt::format("{:.6g} to {:.6g}, mean {:.6g}", least, greatest,
                           sum / static_cast<double>(finite));
    }
    if (finite != tensor.count()) {
        text += fmt::format("{}{} infinite or no number", text.empty() ? "" : "; ",
                            tensor.count() - finite);
    }
    return text.empty() ? "no elements" : text;
}

size_t CountHostSteps(const graph::Plan& plan) {
    return static_cast<size_t>(std::ranges::count_if(plan.steps, [](const graph::PlanStep& step) {
        return std::holds_alternative<graph::HostStep>(step);
    }));
}

}  // namespace

std::string PlanSummary(const NetworkOptions& network, const NetworkRun& run) {
    const graph::Plan& plan = run.graph_plan();
    const runtime::PipelineReport& kernels = run.plan->program->report();
    const size_t host = CountHostSteps(plan);
    std::string text = fmt::format("model      {} from {}\n", Printable(plan.name), network.path);
    text += fmt::format("device     {}\n", run.model->device()->name());
    text += fmt::format("plan       {} dispatches of {} kernels, {} on the host\n",
                        plan.steps.size() - host, plan.kernels.size(),
                        host == 1 ? "1 step" : fmt::format("{} steps", host));
    text += fmt::format("loaded     in {:.1f} ms; kernels in {:.1f} ms of that", run.load_ms,
                        kernels.milliseconds);
    if (kernels.cache_known) {
        text += fmt::format(", {} of {} found in the cache", kernels.from_cache, kernels.pipelines);
    }
    return text + "\n";
}

std::string HostStepList(const graph::Plan& plan) {
    std::string text;
    for (const graph::PlanStep& step : plan.steps) {
        if (const auto* host = std::get_if<graph::HostStep>(&step)) {
            text +=
                fmt::format("on the host {}: {}\n", Printable(host->name), Printable(host->reason));
        }
    }
    return text;
}

std::string PortList(const NetworkData& data, const NetworkRun& run) {
    const graph::Plan& plan = run.graph_plan();
    std::string text;
    for (size_t i = 0; i < data.tensors.size(); ++i) {
        text += fmt::format("input      {}: {} {}\n", Printable(plan.inputs[i].name),
                            data.tensors[i].type().ToString(), data.sources[i]);
    }
    for (size_t i = 0; i < run.outputs.size(); ++i) {
        text += fmt::format("output     {}: {} {}\n", Printable(plan.outputs[i].name),
                            run.outputs[i].type().ToString(), DescribeNumbers(run.outputs[i]));
    }
    return text;
}

std::string TimeSummary(const NetworkRun& run) {
    if (run.milliseconds.size() == 1) {
        return fmt::format("time       {:.3f} ms, one run{}\n", run.median_ms(),
                           run.milliseconds[0] == run.first_run_ms ? ", the first" : "");
    }
    return fmt::format("time       {:.3f} ms, the median of {} runs; the least {:.3f} ms\n",
                       run.median_ms(), run.milliseconds.size(), run.least_ms());
}

namespace {

// The greatest resident set of this process. That of getrusage() counts what the process was before
// it became this program, which a bench that starts it may have made large.
uint64_t PeakBytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) {
            return std::strtoull(line.c_str() + std::strlen("VmHWM:"), nullptr, 10) * 1024;
        }
    }
    return 0;
}

}  // namespace

std::string RunToJson(const NetworkOptions& network,
                      const NetworkRun& run,
                      const std::optional<bench::HostLimits>& limits,
                      const std::optional<runtime::Modelled>& modelled) {
    const graph::Plan& plan = run.graph_plan();
    const runtime::PipelineReport& kernels = run.plan->program->report();
    nlohmann::json json = {
        {"model", network.path},
        {"precision", network.precision},
        {"device", run.model->device()->name()},
        {"kernels", plan.kernels.size()},
        {"kernels_from_cache", kernels.from_cache},
        {"kernels_ms", kernels.milliseconds},
        {"steps", plan.steps.size()},
        {"host_steps", CountHostSteps(plan)},
        {"load_ms", run.load_ms},
        {"first_run_ms", run.first_run_ms},
        {"runs", run.milliseconds.size()},
        {"median_ms", run.median_ms()},
        {"least_ms", run.least_ms()},
        {"arena_bytes", run.memory.arena_bytes},
        {"lower_bound_bytes", run.memory.lower_bound_bytes},
        {"constant_bytes", run.memory.constant_bytes},
        {"peak_bytes", PeakBytes()},
    };
    if (limits.has_value()) {
        json["limits"] = {{"fma_gflops", limits->fma_all_threads_gflops},
                          {"copy_gbs", limits->copy_gbs}};
    }
    if (modelled.has_value()) {
        json["modelled"] = runtime::ToJson(*modelled);
    }
    // Names of nodes may be anything.
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string MemorySummary(const graph::Plan& plan, const graph::MemoryPlan& memory) {
    uint64_t state_bytes = 0;
    for (size_t i = 0; i < plan.blocks.size(); ++i) {
        if (plan.blocks[i].kind == graph::BlockKind::kState) {
            state_bytes += memory.sizes[i] == graph::kUnknownSize ? 0 : memory.sizes[i];
        }
    }
    const double bound = static_cast<double>(memory.lower_bound_bytes);
    std::string text = fmt::format(
        "memory     arena {}, no less than {} possible{}; constants {}, inputs and outputs {}",
        FormatBytes(memory.arena_bytes), FormatBytes(memory.lower_bound_bytes),
        bound > 0 ? fmt::format(" ({:.2f} times)", static_cast<double>(memory.arena_bytes) / bound)
                  : "",
        FormatBytes(memory.constant_bytes), FormatBytes(memory.port_bytes));
    return text +
           (state_bytes == 0 ? "\n" : fmt::format(", states {}\n", FormatBytes(state_bytes)));
}

}  // namespace fornax::tool
