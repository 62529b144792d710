// Collects a plan's blocks, kernels and steps; equal kernels become one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/graph/plan/plan.h"
#include "compiler/graph/schedule/boundaries.h"
#include "compiler/graph/schedule/kernel_builder.h"

namespace fornax::graph {

class PlanBuilder {
  public:
    // The graph outlives the builder. `templates`: whether the plan may have them.
    explicit PlanBuilder(const Graph& graph, bool templates = true);
    bool may_have_templates() const { return templates_; }

    // The block of a value that is in memory, made when it is first asked for.
    BlockId BlockOf(ValueId value);
    BlockId AddBlock(std::string name, TensorType type, BlockKind kind);
    // A block between kernels that is no value of the graph. `name` is the step's, `what` is kept,
    // `reason` is a clause.
    BlockId AddTemporary(const std::string& name,
                         std::string what,
                         TensorType type,
                         std::string reason);
    // The block in which a state lies.
    void SetBlock(ValueId value, BlockId block) { block_of_[value.value()] = block; }
    PlanBlock& block(BlockId id) { return plan_.blocks[id.value()]; }

    // A dispatch of the builder's kernel, with the mapping chosen. `extra` are the blocks of its
    // buffers that are no values, in order.
    void AddDispatch(std::string name,
                     KernelBuilder& builder,
                     const std::vector<BlockId>& extra = {});
    // A dispatch of a kernel that is complete, with the blocks of its buffers.
    void AddDispatch(std::string name, loop::Kernel kernel, std::vector<BlockId> blocks);
    // A dispatch of a template, with the blocks of its buffers.
    void AddTemplate(std::string name, TemplateKernel kernel, std::vector<BlockId> blocks);
    void AddHostStep(HostStep step);

    // Ports and lifetimes; nothing may be added afterwards. `boundaries`, if not null, receives
    // those of AddTemporary() in addition.
    Plan Finish(std::vector<Boundary>* boundaries = nullptr);

  private:
    void AddKernel(loop::Kernel kernel, DispatchStep step);
    void AddStep(PlanKernel kernel, DispatchStep step);
    void AddPorts();
    void SetLifetimes();
    // The steps that use a block after the first one, and "outputs".
    std::vector<std::string> ReadersOf(BlockId id) const;

    const Graph& graph_;
    const bool templates_;
    Plan plan_;
    std::vector<BlockId> block_of_;  // by value index
    std::map<std::string, KernelId> kernels_;
    std::vector<std::pair<BlockId, Boundary>> temporaries_;
};

}  // namespace fornax::graph
