// Whether an instruction, or one inside of it, is of some kind.
#pragma once

#include <algorithm>

#include "compiler/kernel/ir/kernel.h"

namespace fornax::kernel::ir {

template <typename Predicate>
bool AnyInside(const Kernel& kernel, BlockId block, Predicate&& is_such) {
    return std::ranges::any_of(kernel.block(block).insts,
                               [&](InstId id) { return AnyInside(kernel, id, is_such); });
}

// In the order of the text, a construct before what is inside of it. `is_such` takes an
// Instruction.
template <typename Predicate>
bool AnyInside(const Kernel& kernel, InstId id, Predicate&& is_such) {
    const Instruction& inst = kernel.inst(id);
    return is_such(inst) || std::ranges::any_of(inst.blocks, [&](BlockId block) {
               return AnyInside(kernel, block, is_such);
           });
}

inline bool HoldsBarrier(const Kernel& kernel, InstId construct) {
    return AnyInside(kernel, construct,
                     [](const Instruction& inst) { return inst.op == Op::kBarrier; });
}

}  // namespace fornax::kernel::ir
