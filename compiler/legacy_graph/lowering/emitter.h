// The emitter: what a Lower overload of one operator sees of the plan being made.
//
// There is one Lower overload an operator, in lower_*.cpp. It selects a kernel, computes its
// parameters from the operands' shapes and emits dispatches; memory and barriers are not its
// business.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/legacy_graph/graph.h"
#include "compiler/legacy_graph/plan.h"

namespace fornax::legacy_graph {

class Emitter {
  public:
    Emitter(const Graph& graph, Plan& plan) : graph_(graph), plan_(plan) {}

    void BeginNode(const Node& node);

    const Shape& OperandShape(size_t index) const {
        return graph_[node_->operands[index]].type.shape;
    }
    size_t operand_count() const { return node_->operands.size(); }
    const Shape& ResultShape() const { return graph_[node_->result].type.shape; }

    // Tensors of the plan. The result's tensor comes into being with the first call.
    uint32_t Operand(size_t index);
    uint32_t ResultTensor();
    // Makes the result share the storage of an operand.
    void AliasResult(size_t operand);

    // Appends a dispatch that binds `bindings` in order; the last one is written. Fails when the
    // parameters are beyond the kernel's limits.
    Status Emit(KernelId kernel, std::vector<uint32_t> parameters, std::vector<uint32_t> bindings);

    // Of every dispatch: the index of the node it belongs to.
    std::span<const uint32_t> nodes_of_dispatches() const { return nodes_of_dispatches_; }
    // The tensor of a value; makes one if it has none yet.
    uint32_t TensorOf(ValueId id);
    // The value that a tensor was made for.
    ValueId ValueOf(uint32_t tensor) const { return value_of_tensor_[tensor]; }

  private:
    const Graph& graph_;
    Plan& plan_;
    const Node* node_ = nullptr;
    uint32_t node_count_ = 0;
    std::vector<uint32_t> tensor_of_value_;
    std::vector<ValueId> value_of_tensor_;
    std::map<std::vector<uint32_t>, uint32_t> set_of_tensors_;
    std::vector<uint32_t> nodes_of_dispatches_;
};

Status Lower(const op::Conv& conv, Emitter& emitter);
Status Lower(const op::Pool& pool, Emitter& emitter);
Status Lower(const op::MatMul& matmul, Emitter& emitter);
Status Lower(const op::Unary& unary, Emitter& emitter);
Status Lower(const op::Binary& binary, Emitter& emitter);
Status Lower(const op::Softmax& softmax, Emitter& emitter);
Status Lower(const op::Reduce& reduce, Emitter& emitter);
Status Lower(const op::Reshape& reshape, Emitter& emitter);
Status Lower(const op::Transpose& transpose, Emitter& emitter);
Status Lower(const op::Concat& concat, Emitter& emitter);

}  // namespace fornax::legacy_graph
