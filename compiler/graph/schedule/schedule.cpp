// One or more steps for each value that is in memory, in the order of the graph.
#include "compiler/graph/schedule/schedule.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "compiler/graph/schedule/own_kernels.h"
#include "compiler/graph/schedule/plan_builder.h"
#include "compiler/graph/schedule/realize.h"
#include "compiler/graph/schedule/recurrence.h"
#include "compiler/graph/schedule/row_groups.h"

namespace fornax::graph {
namespace {

class Scheduler {
  public:
    Scheduler(const Graph& graph, std::vector<bool> realized, bool serial)
        : graph_(graph),
          realized_(std::move(realized)),
          serial_(serial),
          groups_(graph, realized_, serial),
          plan_(graph, !serial) {}

    Result<Plan> Run(std::vector<Boundary>* boundaries) {
        AddStates();
        for (const Node& node : graph_.nodes()) {
            AddNode(node);
        }
        CopyStatesThatAreReadLater();
        AddStateWrites();
        return plan_.Finish(boundaries);
    }

  private:
    void AddStates() {
        for (const Node& node : graph_.nodes()) {
            if (const auto* read = std::get_if<op::ReadState>(&node.operation)) {
                plan_.SetBlock(node.results[0], StateBlock(read->state, read->type));
                states_.emplace(read->state, node.results[0]);
            } else if (const auto* write = std::get_if<op::WriteState>(&node.operation)) {
                StateBlock(write->state, graph_.TypeOf(node.operands[0]));
            }
        }
        FindUpdates();
    }

    // A state that gets its own value with some elements replaced, and whose old values nothing
    // else reads, is updated in place: all these values lie in its block.
    void FindUpdates() {
        const std::vector<uint32_t> uses = graph_.CountUses();
        std::vector<bool> is_output(graph_.values().size());
        for (const Output& output : graph_.outputs()) {
            is_output[StorageOf(graph_, output.value).value()] = true;
        }
        std::map<ValueId, uint32_t> writes;  // of the stored values
        for (const Node& node : graph_.nodes()) {
            if (Is<op::WriteState>(node.operation)) {
                ++writes[StorageOf(graph_, node.operands[0])];
            }
        }
        for (const Node& node : graph_.nodes()) {
            const auto* write = std::get_if<op::WriteState>(&node.operation);
            if (write == nullptr) {
                continue;
            }
            const ValueId last = StorageOf(graph_, node.operands[0]);
            std::vector<ValueId> updates;
            ValueId value = last;
            while (graph_.ProducerAs<op::Scatter>(value) != nullptr) {
                updates.push_back(value);
                value = OnlyUsedData(*graph_.Producer(value), uses);
                if (!value.valid()) {
                    break;
                }
            }
            const auto* read = value.valid() ? graph_.ProducerAs<op::ReadState>(value) : nullptr;
            if (updates.empty() || read == nullptr || read->state != write->state ||
                is_output[last.value()] || writes.at(last) != 1) {
                continue;
            }
            for (const ValueId update : updates) {
                plan_.SetBlock(update, state_blocks_.at(write->state));
                in_place_.insert(update);
            }
        }
    }

    // The stored value that a scatter updates, or nothing if anything else uses it or a view on the
    // way to it.
    ValueId OnlyUsedData(const Node& scatter, const std::vector<uint32_t>& uses) const {
        ValueId value = scatter.operands[0];
        const ValueId storage = StorageOf(graph_, value);
        for (; value != storage; value = graph_.Producer(value)->operands[0]) {
            if (uses[value.value()] != 1) {
                return {};
            }
        }
        return uses[storage.value()] == 1 ? storage : ValueId();
    }

    BlockId StateBlock(const std::string& state, const TensorType& type) {
        BlockId& block = state_blocks_[state];
        if (!block.valid()) {
            block = plan_.AddBlock(state, type, BlockKind::kState);
        }
        return block;
    }

    void AddNode(const Node& node) {
        const Classification classification = Classify(graph_, node, serial_);
        switch (classification.node_class) {
            case NodeClass::kState:
                return;
            case NodeClass::kHost:
                return AddHostStep(node, classification.reason);
            case NodeClass::kOwnKernel:
                return AddOwnKernel(node);
            case NodeClass::kInline:
            case NodeClass::kReduction:
                break;
        }
        if (!realized_[node.results[0].value()] || groups_.IsStored(node.results[0])) {
            return;
        }
        if (std::optional<KernelBuilder> group = groups_.KernelOf(node)) {
            plan_.AddDispatch(node.name, *group);
        } else {
            AddRoot(node);
        }
    }

    // The kernel of a value that is in memory, with all that is inlined into it.
    void AddRoot(const Node& node) {
        const ValueId value = node.results[0];
        KernelBuilder builder(graph_, realized_, std::string(Name(node.operation)));
        const std::vector<Expr> index = builder.AddParallel(graph_.ShapeOf(value));
        realized_[value.value()] = false;
        const loop::ScalarId scalar = builder.At(value, index);
        realized_[value.value()] = true;
        builder.Store(value, index, scalar);
        plan_.AddDispatch(node.name, builder);
    }

    void AddOwnKernel(const Node& node) {
        if (Is<op::Concat>(node.operation)) {
            AddConcat(graph_, realized_, node, plan_);
        } else if (Is<op::Composite>(node.operation)) {
            AddOfTemplate(graph_, realized_, node, plan_);
        } else if (Is<op::Scan>(node.operation)) {
            AddScan(graph_, realized_, node, plan_);
        } else if (Is<op::Sort>(node.operation)) {
            AddSort(graph_, realized_, node, plan_);
        } else if (Is<op::Loop>(node.operation)) {
            AddRecurrence(graph_, realized_, node, plan_);
        } else {
            AddScatter(graph_, realized_, node, plan_, in_place_.contains(node.results[0]));
        }
    }

    void AddHostStep(const Node& node, const std::string& reason) {
        HostStep step;
        step.name = node.name;
        step.operation = node.operation;
        step.bodies = node.bodies;
        step.reason = reason;
        for (const ValueId operand : node.operands) {
            step.operands.push_back(plan_.BlockOf(StorageOf(graph_, operand)));
            step.operand_types.push_back(graph_.TypeOf(operand));
        }
        for (const ValueId result : node.results) {
            step.results.push_back(plan_.BlockOf(result));
            step.result_types.push_back(graph_.TypeOf(result));
        }
        plan_.AddHostStep(std::move(step));
    }

    // An output or another state that gets a state's value must not see what the run writes to it.
    void CopyStatesThatAreReadLater() {
        std::map<std::string, BlockId> copies;
        const auto keep = [&](const std::string& name, ValueId storage) {
            const auto* read = graph_.ProducerAs<op::ReadState>(storage);
            if (read == nullptr || copies.contains(read->state)) {
                return;
            }
            const BlockId copy = plan_.AddTemporary(
                name, "copy", read->type,
                fmt::format("it is what the state {} held before, which is read after the state is "
                            "written",
                            read->state));
            AddCopy(name, storage, copy);
            copies.emplace(read->state, copy);
        };
        for (const Output& output : graph_.outputs()) {
            keep(output.name, StorageOf(graph_, output.value));
        }
        for (const Node& node : graph_.nodes()) {
            const auto* write = std::get_if<op::WriteState>(&node.operation);
            if (write != nullptr && !KeepsItsValue(node)) {
                keep(node.name, StorageOf(graph_, node.operands[0]));
            }
        }
        for (const auto& [state, copy] : copies) {
            plan_.SetBlock(states_.at(state), copy);
        }
    }

    void AddCopy(const std::string& name, ValueId from, BlockId to) {
        KernelBuilder builder(graph_, realized_, "copy");
        const std::vector<Expr> index = builder.AddParallel(graph_.ShapeOf(from));
        const loop::ScalarId value = builder.LoadFrom(from, index);
        builder.Store(builder.AddBuffer(graph_.TypeOf(from)), index, value);
        plan_.AddDispatch(name, builder, {to});
    }

    // Whether a state is written what it holds already.
    bool KeepsItsValue(const Node& write) const {
        const ValueId storage = StorageOf(graph_, write.operands[0]);
        const auto* read = graph_.ProducerAs<op::ReadState>(storage);
        return in_place_.contains(storage) ||
               (read != nullptr && read->state == std::get<op::WriteState>(write.operation).state);
    }

    void AddStateWrites() {
        for (const Node& node : graph_.nodes()) {
            const auto* write = std::get_if<op::WriteState>(&node.operation);
            if (write == nullptr || KeepsItsValue(node)) {
                continue;
            }
            const ValueId storage = StorageOf(graph_, node.operands[0]);
            AddCopy(node.name, storage, state_blocks_.at(write->state));
        }
    }

    const Graph& graph_;
    std::vector<bool> realized_;
    const bool serial_;
    RowGroups groups_;
    PlanBuilder plan_;
    std::map<std::string, ValueId> states_;  // the value that reads each
    std::map<std::string, BlockId> state_blocks_;
    std::set<ValueId> in_place_;  // results of scatters that lie in their states' blocks
};

}  // namespace

Result<Plan> Schedule(const Graph& graph, std::vector<Boundary>* boundaries, bool serial) {
    Realization realization = ChooseRealized(graph, serial);
    if (boundaries != nullptr) {
        *boundaries = ExplainBoundaries(graph, realization);
    }
    return Scheduler(graph, std::move(realization.realized), serial).Run(boundaries);
}

}  // namespace fornax::graph
