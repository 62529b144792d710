// Blocks, kernels and steps of a plan under construction.
#include "compiler/graph/schedule/plan_builder.h"

#include <algorithm>

#include "compiler/graph/loop/costs.h"
#include "compiler/graph/loop/scope.h"
#include "compiler/graph/plan/plan_kernel.h"
#include "compiler/graph/schedule/kernel_analysis.h"
#include "compiler/graph/schedule/realize.h"
#include "compiler/graph/schedule/share_blocks.h"

namespace fornax::graph {
namespace {

BlockKind KindOf(const Value& value) {
    switch (value.kind) {
        case ValueKind::kInput:
            return BlockKind::kInput;
        case ValueKind::kConstant:
            return BlockKind::kConstant;
        case ValueKind::kResult:
            break;
    }
    return BlockKind::kTemporary;
}

// A kernel asks for the sizes that it uses: others may have no value yet when it runs.
void KeepUsedSizes(loop::Kernel& kernel) {
    Ranges used;
    for (const Symbol& symbol : loop::SizeSymbols(kernel)) {
        used.emplace(symbol, kernel.sizes.at(symbol));
    }
    kernel.sizes = std::move(used);
}

}  // namespace

PlanBuilder::PlanBuilder(const Graph& graph, bool templates)
    : graph_(graph), templates_(templates), block_of_(graph.values().size()) {
    plan_.name = graph.name();
    // The interface has its blocks first and in order, used or not.
    for (const ValueId input : graph.inputs()) {
        BlockOf(input);
    }
}

BlockId PlanBuilder::AddBlock(std::string name, TensorType type, BlockKind kind) {
    const BlockId id(plan_.blocks.size());
    PlanBlock block;
    block.name = std::move(name);
    block.type = std::move(type);
    block.kind = kind;
    plan_.blocks.push_back(std::move(block));
    return id;
}

BlockId PlanBuilder::AddTemporary(const std::string& name,
                                  std::string what,
                                  TensorType type,
                                  std::string reason) {
    const BlockId id = AddBlock(name + "." + what, std::move(type), BlockKind::kTemporary);
    Boundary boundary;
    boundary.node = name;
    boundary.operation = std::move(what);
    boundary.type = block(id).type;
    boundary.reason = std::move(reason);
    boundary.nodes = {name};
    temporaries_.emplace_back(id, std::move(boundary));
    return id;
}

BlockId PlanBuilder::BlockOf(ValueId value) {
    BlockId& id = block_of_[value.value()];
    if (!id.valid()) {
        const Value& source = graph_[value];
        id = AddBlock(source.name, source.type, KindOf(source));
        plan_.blocks.back().data = source.constant.data;
        plan_.blocks.back().strings = source.constant.strings;
    }
    return id;
}

void PlanBuilder::AddDispatch(std::string name,
                              KernelBuilder& builder,
                              const std::vector<BlockId>& extra) {
    ChooseMapping(builder.kernel(), graph_.sizes());
    DispatchStep step;
    step.name = std::move(name);
    size_t next_extra = 0;
    for (const ValueId value : builder.buffer_values()) {
        step.bindings.push_back(value.valid() ? BlockOf(value) : extra[next_extra++]);
    }
    AddKernel(builder.kernel(), std::move(step));
}

void PlanBuilder::AddDispatch(std::string name, loop::Kernel kernel, std::vector<BlockId> blocks) {
    DispatchStep step;
    step.name = std::move(name);
    step.bindings = std::move(blocks);
    AddKernel(std::move(kernel), std::move(step));
}

void PlanBuilder::AddKernel(loop::Kernel kernel, DispatchStep step) {
    KeepUsedSizes(kernel);
    loop::KernelCosts costs = loop::EstimateCosts(kernel);
    step.operations = std::move(costs.operations);
    step.bytes_read = std::move(costs.bytes_read);
    step.bytes_written = std::move(costs.bytes_written);
    AddStep({std::move(kernel)}, std::move(step));
}

void PlanBuilder::AddTemplate(std::string name,
                              TemplateKernel kernel,
                              std::vector<BlockId> blocks) {
    DispatchStep step;
    step.name = std::move(name);
    step.bindings = std::move(blocks);
    step.operations = kernel.operations();
    for (const loop::Buffer& buffer : kernel.buffers()) {
        (buffer.written ? step.bytes_written : step.bytes_read) +=
            buffer.type.shape.Volume() * BytesOf(buffer.type.element);
    }
    AddStep({.loop = {}, .of_template = std::move(kernel)}, std::move(step));
}

void PlanBuilder::AddStep(PlanKernel kernel, DispatchStep step) {
    const auto [found, inserted] = kernels_.emplace(ToText(kernel), KernelId(plan_.kernels.size()));
    if (inserted) {
        plan_.kernels.push_back(std::move(kernel));
    }
    step.kernel = found->second;
    plan_.steps.emplace_back(std::move(step));
}

void PlanBuilder::AddHostStep(HostStep step) {
    plan_.steps.emplace_back(std::move(step));
}

void PlanBuilder::AddPorts() {
    for (uint32_t port = 0; port < graph_.inputs().size(); ++port) {
        const ValueId input = graph_.inputs()[port];
        const TensorType& type = graph_.TypeOf(input);
        plan_.inputs.push_back({graph_[input].name, type, BlockOf(input)});
        for (uint32_t axis = 0; axis < type.shape.rank(); ++axis) {
            const std::vector<Symbol> symbols = type.shape[axis].Symbols();
            if (symbols.size() == 1 && MultipleOf(symbols[0], type.shape[axis])) {
                plan_.sources.push_back({symbols[0], port, axis});
            }
        }
    }
    for (const Output& output : graph_.outputs()) {
        const BlockId id = BlockOf(StorageOf(graph_, output.value));
        if (block(id).kind == BlockKind::kTemporary) {
            block(id).kind = BlockKind::kOutput;
        }
        plan_.outputs.push_back({output.name, graph_.TypeOf(output.value), id});
    }
}

void PlanBuilder::SetLifetimes() {
    std::vector<bool> used(plan_.blocks.size(), false);
    const auto use = [&](BlockId id, uint32_t step) {
        PlanBlock& used_block = block(id);
        if (!used[id.value()]) {
            used_block.first = step;
            used[id.value()] = true;
        }
        used_block.last = step;
    };
    for (const PlanPort& port : plan_.inputs) {
        use(port.block, 0);
    }
    for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
        if (const auto* dispatch = std::get_if<DispatchStep>(&plan_.steps[i])) {
            for (const BlockId id : dispatch->bindings) {
                use(id, i);
            }
        } else {
            const auto& host = std::get<HostStep>(plan_.steps[i]);
            for (const BlockId id : host.operands) {
                use(id, i);
            }
            for (const BlockId id : host.results) {
                use(id, i);
            }
        }
    }
    const auto end = static_cast<uint32_t>(plan_.steps.size());
    for (const PlanPort& port : plan_.outputs) {
        use(port.block, end);
    }
}

std::vector<std::string> PlanBuilder::ReadersOf(BlockId id) const {
    std::vector<std::string> users;
    for (const PlanStep& step : plan_.steps) {
        const auto* dispatch = std::get_if<DispatchStep>(&step);
        if (dispatch != nullptr && std::ranges::count(dispatch->bindings, id) != 0) {
            users.push_back(dispatch->name);
        }
    }
    const auto is_same = [id](const PlanPort& port) { return port.block == id; };
    if (std::ranges::any_of(plan_.outputs, is_same)) {
        users.emplace_back("outputs");
    }
    if (users.size() > 1) {
        users.erase(users.begin());
    }
    const auto repeated = std::ranges::unique(users);
    users.erase(repeated.begin(), repeated.end());
    return users;
}

Plan PlanBuilder::Finish(std::vector<Boundary>* boundaries) {
    AddPorts();
    if (boundaries != nullptr) {
        for (auto& [id, boundary] : temporaries_) {
            boundary.readers = ReadersOf(id);
            boundaries->push_back(std::move(boundary));
        }
    }
    plan_.ranges = graph_.sizes().ranges();
    plan_.guards.assign(graph_.sizes().guards().begin(), graph_.sizes().guards().end());
    plan_.hints = graph_.sizes().hints();
    SetLifetimes();
    ShareBlocks(plan_);
    SetLifetimes();
    return std::move(plan_);
}

}  // namespace fornax::graph
