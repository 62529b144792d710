// How far apart the places are that neighbouring workgroups access, and which loads come by a
// second time. Only good for hints: loops are taken to add what does not depend on the workgroup.
#pragma once

#include <vector>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel {

class WorkgroupSteps {
  public:
    explicit WorkgroupSteps(const ir::Kernel& kernel);

    // The load stands in a loop of a kernel with barriers, and an earlier loop has read the buffer:
    // the lines are there, and there is time to ask for the next workgroup's.
    bool ComesBack(const ir::Instruction& load) const { return comes_back_[load.results[0].index]; }

    // Whether the value differs between workgroups that come one after the other: between
    // neighbours in x, if the kernel asks for that number at all.
    bool Differs(ir::ValueId value) const {
        return uses_x_ ? depends_on_x_[value.index] : depends_[value.index];
    }
    bool DependsOnX(ir::ValueId value) const { return depends_on_x_[value.index]; }

    // The value that a loop's parameter starts with; invalid for others.
    ir::ValueId StartOf(ir::ValueId param) const { return start_[param.index]; }

  private:
    void Visit(ir::BlockId block, ir::InstId loop);
    bool LeavesWithX(ir::BlockId block) const;

    const ir::Kernel& kernel_;
    bool uses_x_ = false;
    std::vector<bool> depends_;       // by value
    std::vector<bool> depends_on_x_;  // by value
    std::vector<ir::ValueId> start_;  // by value
    std::vector<bool> comes_back_;    // by a load's first result
    struct Read {
        uint64_t binding;
        ir::InstId loop;
    };
    std::vector<Read> reads_;
};

}  // namespace fornax::kernel
