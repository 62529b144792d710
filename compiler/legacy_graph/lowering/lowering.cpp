// Lower: emits every node's dispatches, then places tensors and barriers.
#include "compiler/legacy_graph/lowering/lowering.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "compiler/legacy_graph/barrier_planner.h"
#include "compiler/legacy_graph/lowering/emitter.h"
#include "compiler/legacy_graph/memory_planner.h"

namespace fornax::legacy_graph {
namespace {

Status CheckTypes(const Graph& graph) {
    for (const Value& value : graph.values()) {
        if (value.type.type != DataType::kF32) {
            return Error{ErrorCode::kUnsupported,
                         fmt::format("The value {} is {}: it must be f32, because it is not known "
                                     "before the graph runs.",
                                     value.name, value.type.ToString())};
        }
    }
    return OkStatus();
}

void AddPorts(const Graph& graph, Emitter& emitter, Plan& plan) {
    for (ValueId id : graph.inputs()) {
        plan.inputs.push_back({graph[id].name, graph[id].type, emitter.TensorOf(id)});
    }
    for (const Output& output : graph.outputs()) {
        const uint32_t tensor = emitter.TensorOf(output.value);
        plan.outputs.push_back({output.name, graph[output.value].type, tensor});
        if (plan.tensors[tensor].kind == TensorKind::kIntermediate) {
            plan.tensors[tensor].kind = TensorKind::kOutput;
        }
    }
}

void ComputeLifetimes(Plan& plan) {
    const auto end = static_cast<uint32_t>(plan.dispatches.size());
    for (PlanTensor& tensor : plan.tensors) {
        const bool before_start =
            tensor.kind == TensorKind::kConstant || tensor.kind == TensorKind::kInput;
        tensor.first_step = before_start ? 0 : end;
        tensor.last_step = tensor.kind == TensorKind::kConstant ? end : 0;
    }
    for (uint32_t step = 0; step < end; ++step) {
        for (uint32_t index : plan.sets[plan.dispatches[step].set].tensors) {
            PlanTensor& tensor = plan.tensors[index];
            tensor.first_step = std::min(tensor.first_step, step);
            tensor.last_step = std::max(tensor.last_step, step);
        }
    }
    for (const PlanPort& output : plan.outputs) {
        plan.tensors[output.tensor].last_step = end;
    }
}

void PlaceConstants(const Graph& graph, const Emitter& emitter, Plan& plan) {
    uint64_t offset = 0;
    for (PlanTensor& tensor : plan.tensors) {
        if (tensor.kind != TensorKind::kConstant) {
            continue;
        }
        offset = (offset + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
        tensor.offset_bytes = offset;
        offset += tensor.type.size_bytes();
    }
    plan.weights.assign(offset, 0);
    for (uint32_t i = 0; i < plan.tensors.size(); ++i) {
        if (plan.tensors[i].kind != TensorKind::kConstant) {
            continue;
        }
        const std::vector<uint8_t>& data = *graph[emitter.ValueOf(i)].data;
        std::memcpy(plan.weights.data() + plan.tensors[i].offset_bytes, data.data(), data.size());
    }
}

void PlaceArena(Plan& plan) {
    std::vector<BufferLifetime> buffers;
    std::vector<PlanTensor*> tensors;
    for (PlanTensor& tensor : plan.tensors) {
        if (tensor.kind == TensorKind::kConstant) {
            continue;
        }
        buffers.push_back({tensor.type.size_bytes(), tensor.first_step, tensor.last_step});
        tensors.push_back(&tensor);
    }
    const MemoryPlan memory = PlanMemory(buffers, kTensorAlignment);
    for (size_t i = 0; i < tensors.size(); ++i) {
        tensors[i]->offset_bytes = plan.arena_offset() + memory.offsets[i];
    }
    plan.arena_bytes = memory.total_bytes;
    plan.peak_live_bytes = PeakLiveBytes(buffers, kTensorAlignment);
}

void PlaceBarriers(std::span<const uint32_t> nodes_of_dispatches, Plan& plan) {
    std::vector<DispatchAccess> accesses;
    for (size_t i = 0; i < plan.dispatches.size(); ++i) {
        DispatchAccess access;
        access.write_group = nodes_of_dispatches[i];
        for (uint32_t index : plan.sets[plan.dispatches[i].set].tensors) {
            const PlanTensor& tensor = plan.tensors[index];
            access.reads.push_back(
                {tensor.offset_bytes, tensor.offset_bytes + tensor.type.size_bytes()});
        }
        access.write = access.reads.back();
        access.reads.pop_back();
        accesses.push_back(std::move(access));
    }
    const std::vector<bool> barriers = PlanBarriers(accesses);
    for (size_t i = 0; i < barriers.size(); ++i) {
        plan.dispatches[i].barrier_before = barriers[i];
    }
}

}  // namespace

Result<Plan> Lower(const Graph& graph) {
    FORNAX_RETURN_IF_ERROR(CheckTypes(graph));
    Plan plan;
    plan.name = graph.name();
    Emitter emitter(graph, plan);
    for (const Node& node : graph.nodes()) {
        emitter.BeginNode(node);
        FORNAX_RETURN_IF_ERROR(
            std::visit([&](const auto& op) { return Lower(op, emitter); }, node.operation));
    }
    AddPorts(graph, emitter, plan);
    ComputeLifetimes(plan);
    PlaceConstants(graph, emitter, plan);
    PlaceArena(plan);
    PlaceBarriers(emitter.nodes_of_dispatches(), plan);
    FORNAX_RETURN_IF_ERROR(ValidatePlan(plan));
    return plan;
}

}  // namespace fornax::legacy_graph
