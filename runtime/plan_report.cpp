// A plan with the numbers of given sizes as JSON.
#include "runtime/plan_report.h"

#include <nlohmann/json.hpp>

#include "compiler/graph/plan/plan_kernel.h"
#include "npu/description/read.h"
#include "runtime/npu/modelled.h"

namespace fornax::runtime {
namespace {

using nlohmann::json;

json NumberOf(const graph::Expr& expression, const graph::Bindings& sizes) {
    const std::optional<int64_t> value = expression.Evaluate(sizes);
    return value ? json(*value) : json(nullptr);
}

std::string_view NameOf(graph::BlockKind kind) {
    switch (kind) {
        case graph::BlockKind::kConstant:
            return "constant";
        case graph::BlockKind::kInput:
            return "input";
        case graph::BlockKind::kOutput:
            return "output";
        case graph::BlockKind::kTemporary:
            return "temporary";
        case graph::BlockKind::kState:
            return "state";
    }
    return "";
}

std::string_view KindOf(const graph::PlanKernel& kernel) {
    if (kernel.of_template) {
        return "template";
    }
    switch (kernel.loop.mapping) {
        case graph::loop::Mapping::kFlat:
            return "flat";
        case graph::loop::Mapping::kRow:
            return "row";
        case graph::loop::Mapping::kProduct:
            return "product";
        case graph::loop::Mapping::kAttention:
            return "attention";
    }
    return "";
}

json PortsOf(const std::vector<graph::PlanPort>& ports) {
    json made = json::array();
    for (const graph::PlanPort& port : ports) {
        made.push_back(
            {{"name", port.name}, {"type", port.type.ToString()}, {"block", port.block.value()}});
    }
    return made;
}

json IdsOf(const std::vector<graph::BlockId>& blocks) {
    json made = json::array();
    for (const graph::BlockId block : blocks) {
        made.push_back(block.valid() ? json(block.value()) : json(nullptr));
    }
    return made;
}

json StepOf(const graph::Plan& plan, const graph::PlanStep& step, const graph::Bindings& sizes) {
    if (const auto* host = std::get_if<graph::HostStep>(&step)) {
        return {{"name", host->name},
                {"kernel", nullptr},
                {"reason", host->reason},
                {"operations", nullptr},
                {"bytes_read", nullptr},
                {"bytes_written", nullptr},
                {"reads", IdsOf(host->operands)},
                {"writes", IdsOf(host->results)}};
    }
    const auto& dispatch = std::get<graph::DispatchStep>(step);
    json reads = json::array(), writes = json::array();
    const auto buffers = graph::BuffersOf(plan.kernels[dispatch.kernel.value()]);
    for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
        (buffers[i].written ? writes : reads).push_back(dispatch.bindings[i].value());
    }
    return {{"name", dispatch.name},
            {"kernel", dispatch.kernel.value()},
            {"reason", ""},
            {"operations", NumberOf(dispatch.operations, sizes)},
            {"bytes_read", NumberOf(dispatch.bytes_read, sizes)},
            {"bytes_written", NumberOf(dispatch.bytes_written, sizes)},
            {"reads", std::move(reads)},
            {"writes", std::move(writes)}};
}

json BlockOf(const graph::PlanBlock& block, const graph::MemoryPlan& memory, size_t index) {
    const bool is_known = memory.sizes[index] != graph::kUnknownSize;
    return {{"name", block.name},
            {"type", block.type.ToString()},
            {"kind", NameOf(block.kind)},
            {"first", block.first},
            {"last", block.last},
            {"offset", is_known ? json(memory.offsets[index]) : json(nullptr)},
            {"size", is_known ? json(memory.sizes[index]) : json(nullptr)}};
}

json BoundaryOf(const graph::Boundary& boundary) {
    return {{"node", boundary.node},
            {"operation", boundary.operation},
            {"type", boundary.type.ToString()},
            {"reason", boundary.reason},
            {"nodes", boundary.nodes},
            {"readers", boundary.readers}};
}

// The plan on the machine that FORNAX_NPU describes; null without one.
json ModelledOf(const ModelPlan& plan, const Instance& instance) {
    Result<std::optional<npu::Description>> description = npu::DescriptionOfEnvironment();
    if (!description.ok()) {
        return {{"error", description.error().message}};
    }
    if (!description->has_value()) {
        return nullptr;
    }
    const Program& program = *plan.program;
    const Result<Modelled> modelled = ReplayPlan(
        **description,
        RecordsOf(program.plan(), instance.bindings(), instance.memory(), program.kernels()));
    return modelled.ok() ? ToJson(*modelled) : json{{"error", modelled.error().message}};
}

}  // namespace

std::string ReportOf(const ModelPlan& plan,
                     const Instance& instance,
                     std::span<const StepTime> times) {
    const graph::Plan& from = plan.program->plan();
    const graph::MemoryPlan& memory = instance.memory();
    const graph::Bindings& sizes = instance.bindings();
    json report = {{"name", from.name},
                   {"device", plan.program->device()->name()},
                   {"graph", plan.graph_text},
                   {"plan", graph::ToText(from)},
                   {"inputs", PortsOf(from.inputs)},
                   {"outputs", PortsOf(from.outputs)},
                   {"memory",
                    {{"constants", memory.constant_bytes},
                     {"ports", memory.port_bytes},
                     {"arena", memory.arena_bytes},
                     {"lower_bound", memory.lower_bound_bytes}}}};
    report["sizes"] = json::object();
    for (const auto& [symbol, value] : sizes) {
        report["sizes"][std::string(symbol.name())] = value;
    }
    for (const char* list : {"kernels", "steps", "blocks", "boundaries", "times"}) {
        report[list] = json::array();
    }
    for (const graph::PlanKernel& kernel : from.kernels) {
        report["kernels"].push_back({{"name", graph::NameOf(kernel)}, {"kind", KindOf(kernel)}});
    }
    for (const graph::PlanStep& step : from.steps) {
        report["steps"].push_back(StepOf(from, step, sizes));
    }
    for (size_t i = 0; i < from.blocks.size(); ++i) {
        report["blocks"].push_back(BlockOf(from.blocks[i], memory, i));
    }
    for (const graph::Boundary& boundary : plan.boundaries) {
        report["boundaries"].push_back(BoundaryOf(boundary));
    }
    for (const StepTime& time : times) {
        report["times"].push_back({{"step", time.step}, {"nanoseconds", time.nanoseconds}});
    }
    report["modelled"] = ModelledOf(plan, instance);
    // Names are those of the model, which may be anything.
    return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace fornax::runtime
