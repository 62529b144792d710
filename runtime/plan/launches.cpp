#include "runtime/plan/launches.h"

#include <set>

#include <fmt/format.h>

#include "compiler/graph/plan/barriers.h"
#include "compiler/graph/plan/plan_kernel.h"
#include "runtime/plan/sizes.h"

namespace fornax::runtime {

Result<std::vector<Launch>> PlanLaunches(const graph::Plan& plan,
                                         uint32_t first,
                                         uint32_t end,
                                         const graph::Bindings& bindings,
                                         std::span<const Place> places,
                                         std::span<const KernelInterface> kernels,
                                         const LaunchLimits& limits) {
    std::vector<Launch> launches;
    std::vector<graph::DispatchAccess> accesses;
    for (uint32_t i = first; i < end; ++i) {
        const auto& step = std::get<graph::DispatchStep>(plan.steps[i]);
        const KernelInterface& kernel = kernels[step.kernel.value()];
        Launch launch;
        launch.step = i;
        bool is_empty = false;
        for (size_t axis = 0; axis < 3; ++axis) {
            const std::optional<int64_t> count = kernel.workgroups[axis].Evaluate(bindings);
            if (!count || *count < 0 || *count > limits.max_workgroups[axis]) {
                return Error{
                    ErrorCode::kUnsupported,
                    fmt::format("The dispatch {} needs {} workgroups along axis {} ({}); the "
                                "device runs at most {}.",
                                step.name, count ? std::to_string(*count) : "unknown", axis,
                                DescribeSymbols(kernel.workgroups, bindings),
                                limits.max_workgroups[axis])};
            }
            launch.workgroups[axis] = static_cast<uint32_t>(*count);
            is_empty |= *count == 0;
        }
        if (is_empty) {
            continue;
        }
        for (const graph::Expr& constant : kernel.push_constants) {
            const std::optional<int64_t> value = constant.Evaluate(bindings);
            if (!value || *value < 0 || *value > UINT32_MAX) {
                return Error{
                    ErrorCode::kUnsupported,
                    fmt::format("The dispatch {} takes {} as 32 bits; it is {}.", step.name,
                                constant.ToString(), value ? std::to_string(*value) : "unknown")};
            }
            launch.push_constants.push_back(static_cast<uint32_t>(*value));
        }
        for (const graph::Expr& size : kernel.limits) {
            const std::optional<int64_t> value = size.Evaluate(bindings);
            if (!value || *value > INT32_MAX) {
                return Error{ErrorCode::kUnsupported,
                             fmt::format("The dispatch {} has a size {} of {}; its kernel is for "
                                         "at most {}.",
                                         step.name, size.ToString(),
                                         value ? std::to_string(*value) : "unknown", INT32_MAX)};
            }
        }
        graph::DispatchAccess access;
        bool writes_bytes = false;
        const std::span<const graph::loop::Buffer> buffers =
            graph::BuffersOf(plan.kernels[step.kernel.value()]);
        for (size_t b = 0; b < step.bindings.size(); ++b) {
            const Place& place = places[step.bindings[b].value()];
            if (place.size > limits.max_binding_bytes) {
                return Error{ErrorCode::kUnsupported,
                             fmt::format("The tensor {} has {} bytes; the device binds at most {}.",
                                         plan.blocks[step.bindings[b].value()].name, place.size,
                                         limits.max_binding_bytes)};
            }
            const graph::ByteRange range = {place.region, place.offset, place.offset + place.size};
            access.reads.push_back(range);
            if (buffers[b].written) {
                access.writes.push_back(range);
                writes_bytes |= place.size != 0;
            }
        }
        if (!writes_bytes) {
            continue;
        }
        accesses.push_back(std::move(access));
        launches.push_back(std::move(launch));
    }
    const std::vector<bool> barriers = graph::PlanBarriers(accesses);
    for (size_t i = 0; i < launches.size(); ++i) {
        launches[i].barrier_before = barriers[i];
    }
    return launches;
}

Status CheckRecordable(const graph::Plan& plan) {
    for (const graph::PlanStep& step : plan.steps) {
        if (const auto* host = std::get_if<graph::HostStep>(&step)) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("{} runs {} on the host ({}), so it cannot be recorded.",
                                     plan.name, host->name, host->reason)};
        }
    }
    return OkStatus();
}

std::vector<Stage> StagesOf(const graph::Plan& plan) {
    std::set<graph::Symbol> known;
    for (const graph::SymbolSource& source : plan.sources) {
        known.insert(source.symbol);
    }
    const auto count = static_cast<uint32_t>(plan.steps.size());
    std::vector<Stage> stages = {{0, count}};
    for (uint32_t i = 0; i < count; ++i) {
        const auto* step = std::get_if<graph::HostStep>(&plan.steps[i]);
        if (step == nullptr) {
            continue;
        }
        bool gives_size = false;
        for (const graph::TensorType& type : step->result_types) {
            for (const graph::Expr& dim : type.shape.dims()) {
                for (const graph::Symbol& symbol : dim.Symbols()) {
                    gives_size |= known.insert(symbol).second;
                }
            }
        }
        if (gives_size) {
            stages.back().end = i + 1;
            stages.push_back({i + 1, count});
        }
    }
    return stages;
}

}  // namespace fornax::runtime
