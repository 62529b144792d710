// Copies of instructions with everything inside of them, as unrolling needs them.
#pragma once

#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

// Remembers what each copied value and construct became, so that later copies refer to copies.
// What was never copied or mapped stands for itself.
class Cloner {
  public:
    explicit Cloner(ir::Kernel& kernel) : kernel_(kernel) {}

    ir::ValueId Value(ir::ValueId id) const {
        return id.value() < values_.size() && values_[id.value()].valid() ? values_[id.value()]
                                                                          : id;
    }
    void MapValue(ir::ValueId from, ir::ValueId to) {
        if (values_.size() <= from.value()) {
            values_.resize(kernel_.num_values());
        }
        values_[from.value()] = to;
    }
    // Exits to `from` become exits to `exit_to`; continues of it, exits to `continue_to`. The last
    // call holds for a loop, until Unmap forgets that call.
    void MapLoop(ir::InstId from, ir::InstId exit_to, ir::InstId continue_to) {
        loops_.push_back({from, exit_to, continue_to});
    }
    void UnmapLoop() { loops_.pop_back(); }
    // Exits to construct `from`, which is no loop, become exits to `to`.
    void MapConstruct(ir::InstId from, ir::InstId to) {
        if (insts_.size() <= from.value()) {
            insts_.resize(kernel_.num_insts());
        }
        insts_[from.value()] = to;
    }

    // Appends copies of the block's instructions to `to`, without the terminator unless asked;
    // those before `first` are left out.
    void CloneInto(ir::BlockId from, ir::BlockId to, bool with_terminator, size_t first = 0);
    // A copy that stands in no block yet.
    ir::InstId Clone(ir::InstId id);
    // Appends a copy of one instruction.
    ir::InstId CloneOne(ir::InstId id, ir::BlockId to);
    // What a construct became.
    ir::InstId Construct(ir::InstId id) const { return Target(id); }

  private:
    struct LoopTargets {
        ir::InstId loop;
        ir::InstId exit_to;
        ir::InstId continue_to;
    };

    const LoopTargets* Mapped(ir::InstId loop) const;
    ir::InstId Target(ir::InstId id) const {
        return id.value() < insts_.size() && insts_[id.value()].valid() ? insts_[id.value()] : id;
    }

    ir::Kernel& kernel_;
    std::vector<ir::ValueId> values_;
    std::vector<ir::InstId> insts_;  // copies of constructs
    std::vector<LoopTargets> loops_;
};

// How the end of a block gets a second form.
struct SecondForm {
    ir::ValueId condition;
    bool copy_if = true;     // the copy is for when the condition is this
    size_t copied_from = 0;  // instructions before this one are not in the copy
};

// Takes the instructions from `at` on away from a block.
std::vector<ir::InstId> TakeEnd(ir::Kernel& kernel, ir::BlockId block, size_t at);

// Appends to the block a branch between `end`, which was taken away, and a copy of it, and then the
// terminator, which takes from the branch what it took from `end`. Gives the branch.
ir::InstId AppendForms(ir::Kernel& kernel,
                       ir::BlockId block,
                       std::vector<ir::InstId> end,
                       const SecondForm& form,
                       Cloner& cloner);

}  // namespace fornax::kernel
