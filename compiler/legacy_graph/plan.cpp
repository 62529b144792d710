// Plan sums and ValidatePlan.
#include "compiler/legacy_graph/plan.h"

#include <algorithm>

#include <fmt/format.h>

namespace fornax::legacy_graph {
namespace {

Error Bad(std::string message) {
    return {ErrorCode::kDataLoss, std::move(message)};
}

Status ValidateTensors(const Plan& plan) {
    const uint64_t arena_begin = plan.arena_offset();
    const uint64_t region = plan.region_bytes();
    if (plan.arena_bytes > (uint64_t{1} << 48) || region < arena_begin) {
        return Bad(fmt::format("An arena of {} bytes is too large.", plan.arena_bytes));
    }
    for (const PlanTensor& tensor : plan.tensors) {
        if (tensor.type.type != DataType::kF32) {
            return Bad(
                fmt::format("The tensor {} is {}, not f32.", tensor.name, tensor.type.ToString()));
        }
        const bool constant = tensor.kind == TensorKind::kConstant;
        const uint64_t begin = constant ? 0 : arena_begin;
        const uint64_t end = constant ? plan.weights.size() : region;
        if (tensor.offset_bytes % kTensorAlignment != 0 || tensor.offset_bytes < begin ||
            tensor.offset_bytes > end || tensor.type.size_bytes() > end - tensor.offset_bytes) {
            return Bad(fmt::format(
                "The tensor {} of {} bytes at {} is outside of its region "
                "[{}, {}).",
                tensor.name, tensor.type.size_bytes(), tensor.offset_bytes, begin, end));
        }
        if (tensor.first_step > tensor.last_step || tensor.last_step > plan.dispatches.size()) {
            return Bad(fmt::format("The tensor {} lives from step {} to {} of {}.", tensor.name,
                                   tensor.first_step, tensor.last_step, plan.dispatches.size()));
        }
    }
    return OkStatus();
}

Status ValidatePorts(const Plan& plan, const std::vector<PlanPort>& ports, const char* kind) {
    for (const PlanPort& port : ports) {
        if (port.tensor >= plan.tensors.size()) {
            return Bad(fmt::format("The {} {} is tensor {} of {}.", kind, port.name, port.tensor,
                                   plan.tensors.size()));
        }
        if (port.type.type != DataType::kF32 ||
            port.type.size_bytes() != plan.tensors[port.tensor].type.size_bytes()) {
            return Bad(fmt::format("The {} {} of {} does not fit its tensor of {}.", kind,
                                   port.name, port.type.ToString(),
                                   plan.tensors[port.tensor].type.ToString()));
        }
    }
    return OkStatus();
}

Status ValidateDispatch(const Plan& plan, const PlanDispatch& dispatch) {
    Result<KernelFootprint> footprint = Footprint(dispatch.kernel, dispatch.parameters);
    if (!footprint.ok()) {
        return Bad(fmt::format("The dispatch {}: {}.", dispatch.name, footprint.error().message));
    }
    if (footprint->grid != dispatch.grid) {
        return Bad(fmt::format("The dispatch {} has a grid of {} workgroups, not {}.",
                               dispatch.name, fmt::join(dispatch.grid, "x"),
                               fmt::join(footprint->grid, "x")));
    }
    if (dispatch.set >= plan.sets.size()) {
        return Bad(fmt::format("The dispatch {} uses set {} of {}.", dispatch.name, dispatch.set,
                               plan.sets.size()));
    }
    const std::vector<uint32_t>& bound = plan.sets[dispatch.set].tensors;
    if (bound.size() != footprint->elements.size()) {
        return Bad(fmt::format("The dispatch {} binds {} tensors to the {} bindings of its kernel.",
                               dispatch.name, bound.size(), footprint->elements.size()));
    }
    for (size_t i = 0; i < bound.size(); ++i) {
        const PlanTensor& tensor = plan.tensors[bound[i]];
        if (footprint->elements[i] > tensor.type.shape.elements()) {
            return Bad(fmt::format("The dispatch {} touches {} elements of {}, which has {}.",
                                   dispatch.name, footprint->elements[i], tensor.name,
                                   tensor.type.shape.elements()));
        }
    }
    if (plan.tensors[bound.back()].kind == TensorKind::kConstant) {
        return Bad(fmt::format("The dispatch {} writes the constant {}.", dispatch.name,
                               plan.tensors[bound.back()].name));
    }
    return OkStatus();
}

}  // namespace

std::string_view Name(TensorKind kind) {
    static constexpr std::string_view kNames[] = {"constant", "input", "intermediate", "output"};
    static_assert(std::size(kNames) == static_cast<size_t>(kLastTensorKind) + 1);
    return kNames[static_cast<size_t>(kind)];
}

uint64_t Plan::unshared_bytes() const {
    uint64_t sum = 0;
    for (const PlanTensor& tensor : tensors) {
        if (tensor.kind != TensorKind::kConstant) {
            sum += tensor.type.size_bytes();
        }
    }
    return sum;
}

void FillCosts(PlanDispatch& dispatch) {
    Result<KernelFootprint> footprint = Footprint(dispatch.kernel, dispatch.parameters);
    if (!footprint.ok()) {
        return;
    }
    dispatch.operations = footprint->operations;
    dispatch.bytes_written = footprint->elements.back() * sizeof(float);
    dispatch.bytes_read = 0;
    for (size_t i = 0; i + 1 < footprint->elements.size(); ++i) {
        dispatch.bytes_read += footprint->elements[i] * sizeof(float);
    }
}

Status ValidatePlan(const Plan& plan) {
    FORNAX_RETURN_IF_ERROR(ValidateTensors(plan));
    FORNAX_RETURN_IF_ERROR(ValidatePorts(plan, plan.inputs, "input"));
    FORNAX_RETURN_IF_ERROR(ValidatePorts(plan, plan.outputs, "output"));
    for (const PlanPort& input : plan.inputs) {
        if (plan.tensors[input.tensor].kind != TensorKind::kInput) {
            return Bad(fmt::format("The input {} is not an input tensor.", input.name));
        }
    }
    for (const PlanSet& set : plan.sets) {
        for (uint32_t tensor : set.tensors) {
            if (tensor >= plan.tensors.size()) {
                return Bad(fmt::format("A descriptor set names tensor {} of {}.", tensor,
                                       plan.tensors.size()));
            }
        }
    }
    for (const PlanDispatch& dispatch : plan.dispatches) {
        FORNAX_RETURN_IF_ERROR(ValidateDispatch(plan, dispatch));
    }
    return OkStatus();
}

}  // namespace fornax::legacy_graph
