// One pass over the steps, in which blocks become parts of others; then what is left is numbered
// anew.
#include "compiler/graph/schedule/share_blocks.h"

#include <algorithm>

#include "compiler/graph/loop/in_place.h"
#include "compiler/graph/plan/size_proofs.h"

namespace fornax::graph {
namespace {

class Sharer {
  public:
    explicit Sharer(Plan& plan) : plan_(plan), proofs_(plan.guards) {
        for (size_t i = 0; i < plan.blocks.size(); ++i) {
            shared_.emplace_back(i);
        }
    }

    void Run() {
        std::vector<PlanStep> kept;
        for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
            auto* dispatch = std::get_if<DispatchStep>(&plan_.steps[i]);
            if (dispatch == nullptr || !BecomesNothing(*dispatch, i)) {
                kept.push_back(std::move(plan_.steps[i]));
            }
        }
        plan_.steps = std::move(kept);
        ForBlocks([&](BlockId& id) { id = SharedBy(id); });
        DropUnusedBlocks();
        DropUnusedKernels();
    }

  private:
    PlanBlock& block(BlockId id) { return plan_.blocks[id.value()]; }

    BlockId SharedBy(BlockId id) const {
        while (shared_[id.value()] != id) {
            id = shared_[id.value()];
        }
        return id;
    }

    // Finds an operand for each result of a step; true if the step then does nothing.
    bool BecomesNothing(const DispatchStep& step, uint32_t index) {
        const PlanKernel& kernel = plan_.kernels[step.kernel.value()];
        if (kernel.of_template) {
            return false;
        }
        const std::vector<loop::Buffer>& buffers = kernel.loop.buffers;
        std::vector<BlockId> bindings;
        for (const BlockId id : step.bindings) {
            bindings.push_back(SharedBy(id));
        }
        for (size_t written = 0; written < buffers.size(); ++written) {
            if (!buffers[written].written || !BeginsHere(bindings, written, index)) {
                continue;
            }
            for (size_t read = 0; read < buffers.size(); ++read) {
                if (EndsHere(bindings[read], index) &&
                    MayShare(kernel.loop, bindings, read, written)) {
                    Share(bindings[read], bindings[written]);
                    return loop::CopiesInPlace(kernel.loop, loop::BufferId(read),
                                               loop::BufferId(written));
                }
            }
        }
        return false;
    }

    bool BeginsHere(const std::vector<BlockId>& bindings, size_t written, uint32_t index) {
        const PlanBlock& result = block(bindings[written]);
        return (result.kind == BlockKind::kTemporary || result.kind == BlockKind::kOutput) &&
               result.first == index &&
               std::count(bindings.begin(), bindings.end(), bindings[written]) == 1;
    }

    bool EndsHere(BlockId id, uint32_t index) {
        const PlanBlock& operand = block(id);
        return operand.kind == BlockKind::kTemporary && operand.first < index &&
               operand.last == index;
    }

    // Every buffer that is bound to the operand counts.
    bool MayShare(const loop::Kernel& kernel,
                  const std::vector<BlockId>& bindings,
                  size_t read,
                  size_t written) {
        const TensorType& operand = block(bindings[read]).type;
        const TensorType& result = block(bindings[written]).type;
        if (operand.element != result.element ||
            !proofs_.HaveEqualVolumes(operand.shape, result.shape)) {
            return false;
        }
        for (size_t i = 0; i < bindings.size(); ++i) {
            if (bindings[i] == bindings[read] &&
                !loop::MayShareBytes(kernel, loop::BufferId(i), loop::BufferId(written))) {
                return false;
            }
        }
        return true;
    }

    // Outputs stay what they are: the operand is computed in the output's memory.
    void Share(BlockId operand, BlockId result) {
        if (block(result).kind == BlockKind::kOutput) {
            shared_[operand.value()] = result;
            block(result).first = block(operand).first;
        } else {
            shared_[result.value()] = operand;
            block(operand).last = block(result).last;
        }
    }

    void ForBlocks(const auto& code) {
        for (std::vector<PlanPort>* ports : {&plan_.inputs, &plan_.outputs}) {
            for (PlanPort& port : *ports) {
                code(port.block);
            }
        }
        for (PlanStep& step : plan_.steps) {
            if (auto* dispatch = std::get_if<DispatchStep>(&step)) {
                std::for_each(dispatch->bindings.begin(), dispatch->bindings.end(), code);
            } else {
                auto& host = std::get<HostStep>(step);
                std::for_each(host.operands.begin(), host.operands.end(), code);
                std::for_each(host.results.begin(), host.results.end(), code);
            }
        }
    }

    void DropUnusedBlocks() {
        std::vector<BlockId> numbers(plan_.blocks.size());
        std::vector<PlanBlock> kept;
        for (size_t i = 0; i < plan_.blocks.size(); ++i) {
            if (shared_[i] == BlockId(i)) {
                numbers[i] = BlockId(kept.size());
                kept.push_back(std::move(plan_.blocks[i]));
            }
        }
        plan_.blocks = std::move(kept);
        ForBlocks([&](BlockId& id) { id = numbers[id.value()]; });
    }

    void DropUnusedKernels() {
        std::vector<bool> used(plan_.kernels.size(), false);
        for (const PlanStep& step : plan_.steps) {
            if (const auto* dispatch = std::get_if<DispatchStep>(&step)) {
                used[dispatch->kernel.value()] = true;
            }
        }
        std::vector<KernelId> numbers(plan_.kernels.size());
        std::vector<PlanKernel> kept;
        for (size_t i = 0; i < plan_.kernels.size(); ++i) {
            if (used[i]) {
                numbers[i] = KernelId(kept.size());
                kept.push_back(std::move(plan_.kernels[i]));
            }
        }
        plan_.kernels = std::move(kept);
        for (PlanStep& step : plan_.steps) {
            if (auto* dispatch = std::get_if<DispatchStep>(&step)) {
                dispatch->kernel = numbers[dispatch->kernel.value()];
            }
        }
    }

    Plan& plan_;
    const SizeProofs proofs_;
    std::vector<BlockId> shared_;  // by block: where it lies, itself if in its own
};

}  // namespace

void ShareBlocks(Plan& plan) {
    Sharer(plan).Run();
}

}  // namespace fornax::graph
