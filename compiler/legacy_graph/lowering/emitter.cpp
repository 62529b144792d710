// Tensors and dispatches of the plan being made.
#include "compiler/legacy_graph/lowering/emitter.h"

#include <utility>

#include <fmt/format.h>

namespace fornax::legacy_graph {
namespace {

constexpr uint32_t kNoTensor = UINT32_MAX;

}  // namespace

void Emitter::BeginNode(const Node& node) {
    node_ = &node;
    ++node_count_;
}

uint32_t Emitter::TensorOf(ValueId id) {
    tensor_of_value_.resize(graph_.values().size(), kNoTensor);
    uint32_t& tensor = tensor_of_value_[id.value()];
    if (tensor == kNoTensor) {
        const Value& value = graph_[id];
        TensorKind kind = TensorKind::kIntermediate;
        if (value.kind == ValueKind::kInput) {
            kind = TensorKind::kInput;
        } else if (value.kind == ValueKind::kConstant) {
            kind = TensorKind::kConstant;
        }
        tensor = static_cast<uint32_t>(plan_.tensors.size());
        plan_.tensors.push_back({value.name, value.type, kind});
        value_of_tensor_.push_back(id);
    }
    return tensor;
}

uint32_t Emitter::Operand(size_t index) {
    return TensorOf(node_->operands[index]);
}

uint32_t Emitter::ResultTensor() {
    return TensorOf(node_->result);
}

void Emitter::AliasResult(size_t operand) {
    const uint32_t tensor = Operand(operand);
    tensor_of_value_[node_->result.value()] = tensor;
}

Status Emitter::Emit(KernelId kernel,
                     std::vector<uint32_t> parameters,
                     std::vector<uint32_t> bindings) {
    Result<KernelFootprint> footprint = Footprint(kernel, parameters);
    if (!footprint.ok()) {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("The node {} ({}): {}.", node_->name, Name(node_->operation),
                                 footprint.error().message)};
    }
    PlanDispatch dispatch;
    dispatch.name = node_->name;
    dispatch.kernel = kernel;
    dispatch.parameters = std::move(parameters);
    dispatch.grid = footprint->grid;
    FillCosts(dispatch);

    // Dispatches that bind the same tensors share a set.
    const auto [entry, is_new] =
        set_of_tensors_.emplace(bindings, static_cast<uint32_t>(plan_.sets.size()));
    if (is_new) {
        plan_.sets.push_back({std::move(bindings)});
    }
    dispatch.set = entry->second;
    plan_.dispatches.push_back(std::move(dispatch));
    nodes_of_dispatches_.push_back(node_count_);
    return OkStatus();
}

}  // namespace fornax::legacy_graph
